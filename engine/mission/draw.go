package mission

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Drawing says how a graph is drawn.
type Drawing struct {
	Width int                   // columns, at least 40
	ASCII bool                  // no line-drawing characters
	Note  func(unit int) string // said after a unit's name; nil: nothing
	// Paint makes a unit's line, without its end, into what is written; nil: as it is.
	Paint func(unit int, line string) string
}

// strokes are what lines are made of.
type strokes struct{ fork, last, down, bar, cut string }

var (
	lineStrokes  = strokes{"├─ ", "└─ ", "↓ ", "│  ", "…"}
	asciiStrokes = strokes{"|- ", "`- ", "v ", "|  ", "~"}
)

// Draw is the graph as a text. What waits for a unit stands below it: after an
// arrow if it is the only one, else as a branch. A unit that waits for several
// stands below the last of them and is named, with a mark, below the others.
// What would be too far to the right begins anew at the left.
func (g *Graph) Draw(d Drawing) string {
	p := pen{graph: g, drawing: d, strokes: lineStrokes, count: g.Countdown()}
	p.drawing.Width = max(d.Width, 40)
	if d.ASCII {
		p.strokes = asciiStrokes
	}
	for _, root := range p.count.Roots(nil) {
		p.unit(root, "", "")
		for len(p.later) > 0 {
			next := p.later[0]
			p.later = p.later[1:]
			p.from = p.graph.mission.Units[next.parent].Name
			p.unit(next.unit, "", "")
		}
	}
	return p.text.String()
}

// pen is a drawing while it grows.
type pen struct {
	graph   *Graph
	drawing Drawing
	strokes strokes
	count   *Countdown
	later   []moved // units that begin anew at the left
	from    string  // the unit above that the next line's continues
	text    strings.Builder
}

// moved is a unit that has no room where it belongs.
type moved struct{ unit, parent int32 }

// unit draws a unit and all that only waits for it any more. before is what
// stands before the lines below it, stroke what leads to its own.
func (p *pen) unit(u int32, before, stroke string) {
	lead := before + stroke
	if stroke != "" {
		before += p.below(stroke)
	}
	for {
		p.line(lead, u, p.notes(u))
		children := p.graph.children.of(u)
		if len(children) != 1 || len(p.graph.parents[children[0]]) != 1 {
			break
		}
		u, lead = children[0], before+p.strokes.down
	}
	p.branches(u, before)
}

func (p *pen) below(stroke string) string {
	if stroke == p.strokes.last {
		return "   "
	}
	return p.strokes.bar
}

func (p *pen) branches(u int32, before string) {
	children := p.graph.children.of(u)
	for i, child := range children {
		stroke := p.strokes.fork
		if i == len(children)-1 {
			stroke = p.strokes.last
		}
		p.count.left[child]--
		switch {
		case p.count.left[child] > 0:
			p.line(before+stroke, child, "(below)")
		case utf8.RuneCountInString(before) >= p.drawing.Width*3/10 && len(p.graph.children.of(child)) > 0:
			p.line(before+stroke, child, "(goes on below)")
			p.later = append(p.later, moved{child, u})
		default:
			p.unit(child, before, stroke)
		}
	}
}

// notes are what is said after a unit's name.
func (p *pen) notes(u int32) string {
	unit := &p.graph.mission.Units[u]
	var notes []string
	if p.from != "" {
		notes = append(notes, "(from "+p.from+", above)")
		p.from = ""
	}
	if p.drawing.Note != nil {
		if note := p.drawing.Note(int(u)); note != "" {
			notes = append(notes, note)
		}
	}
	if len(unit.Deps) > 1 {
		notes = append(notes, "after "+strings.Join(unit.Deps, ", "))
	}
	if len(unit.Weak) > 0 {
		notes = append(notes, "beside "+strings.Join(unit.Weak, ", "))
	}
	return strings.Join(notes, "; ")
}

// line writes one line; a note that does not fit is cut.
func (p *pen) line(lead string, u int32, note string) {
	text := lead + p.graph.mission.Units[u].Name
	if note != "" {
		text = fmt.Sprintf("%s  %s", text, note)
	}
	if n := p.drawing.Width; utf8.RuneCountInString(text) > n {
		text = string([]rune(text)[:n-1]) + p.strokes.cut
	}
	if p.drawing.Paint != nil {
		text = p.drawing.Paint(int(u), text)
	}
	p.text.WriteString(text)
	p.text.WriteByte('\n')
}
