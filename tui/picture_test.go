package tui

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// demo is the demo at work, as TestRecord of tui/cli read it.
type demo struct {
	Over   view.Overview
	Rates  []float64
	Runs   []view.Run
	Events []struct {
		view.Event
		Words string
		Alarm bool
	}
}

// The README's picture is the frame that this code draws of the demo.
func TestPicture(t *testing.T) {
	text, err := os.ReadFile("testdata/demo.json")
	if err != nil {
		t.Fatal(err)
	}
	var d demo
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	const w, h = 100, 30
	words := map[int64]int{}
	f := &fake{over: d.Over}
	for i := range d.Events {
		f.events = append(f.events, d.Events[i].Event)
		words[d.Events[i].Seq] = i
	}
	for i := range d.Runs {
		f.runs = append(f.runs, view.RunDetail{Run: d.Runs[i]})
	}
	now := d.Over.Status.Now.UTC()
	m := newModel(Options{
		Source: counted{f, d.Over.Status.Tasks}, Now: func() time.Time { return now }, Theme: "dark",
		Describe: func(e *view.Event) (string, bool) { i := words[e.Seq]; return d.Events[i].Words, d.Events[i].Alarm },
	})
	r := &rig{t: t, f: f, m: m, now: now}
	r.send(tea.WindowSizeMsg{Width: w, Height: h})
	r.run(m.poll())
	r.run(m.poll())
	m.s.pulse.rates, m.frame = d.Rates, ""
	checkFrame(t, "the picture", r.frame(), w, h)
	r.sees("2 running").sees("1 dead letter").sees("r-0001   weather").sees("task.start")
	picture := svg(r.frame(), w, h)
	if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/console.svg"
	if *update {
		if err := os.WriteFile(file, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != picture {
		t.Errorf("%s is not what the console draws now (go test ./tui -run Picture -update): %v", file, err)
	}
	if readme, err := os.ReadFile("../README.md"); err != nil || !strings.Contains(string(readme), "(tui/"+file+")") {
		t.Errorf("the README does not show tui/%s: %v", file, err)
	}
}

// Cells of the picture.
const (
	cellWide, cellHigh = 8.4, 17
	margin             = 8
	paper, ink         = "#0d1117", "#c9d1d9"
)

// inks are the colours of the dark theme's SGR codes.
var inks = map[string]string{"90": "#8b949e", "31": "#ff7b72", "32": "#3fb950", "33": "#d29922", "34": "#79c0ff", "36": "#39c5cf"}

// svg draws a frame: a text for each run of one style, at its column, stretched
// to its columns whatever font is there.
func svg(frame string, w, h int) string {
	var b strings.Builder
	wide, high := float64(w)*cellWide+2*margin, h*cellHigh+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img">`+"\n", wide, high, wide, high)
	fmt.Fprintf(&b, "<title>the console of apollo11 on its demo</title>\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", paper)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="%s" style="white-space:pre" xml:space="preserve">`+"\n", ink)
	for y, line := range strings.Split(frame, "\n") {
		column := 0
		for _, run := range runsOf(line) {
			drawRun(&b, run, column, y)
			column += width(run.text)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// styledRun is text of one style.
type styledRun struct {
	text  string
	codes []string
}

func runsOf(line string) (runs []styledRun) {
	var codes []string
	for line != "" {
		at := sgr.FindStringIndex(line)
		if at == nil {
			return append(runs, styledRun{line, codes})
		}
		if at[0] > 0 {
			runs = append(runs, styledRun{line[:at[0]], codes})
		}
		codes = strings.Split(strings.Trim(line[at[0]:at[1]], "\x1b[m"), ";")
		line = line[at[1]:]
	}
	return runs
}

func drawRun(b *strings.Builder, r styledRun, column, y int) {
	fill, weight, turned := ink, "", false
	for _, code := range r.codes {
		switch {
		case code == "1":
			weight = ` font-weight="bold"`
		case code == "7":
			turned = true
		case inks[code] != "":
			fill = inks[code]
		}
	}
	x, top := margin+float64(column)*cellWide, margin+y*cellHigh
	if turned {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, top, float64(width(r.text))*cellWide, cellHigh, fill)
		fill = paper
	}
	text := strings.TrimRight(r.text, " ")
	lead := width(text) - width(strings.TrimLeft(text, " "))
	if text = strings.TrimLeft(text, " "); text == "" {
		return
	}
	colour := ""
	if fill != ink {
		colour = fmt.Sprintf(` fill="%s"`, fill)
	}
	var escaped strings.Builder
	xml.EscapeText(&escaped, []byte(text))
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f"%s%s>%s</text>`+"\n", x+float64(lead)*cellWide, top+13, float64(width(text))*cellWide, colour, weight, escaped.String())
}

// counted is a fake with the counts of tasks that it was given.
type counted struct {
	*fake
	tasks view.Counts
}

func (c counted) Overview(ctx context.Context) (*view.Overview, error) {
	o, err := c.fake.Overview(ctx)
	o.Status.Tasks = c.tasks
	return o, err
}
