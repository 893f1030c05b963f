package tui

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func numbers(list ...string) []string { return list }

func newStrings(rows ...string) *list[string] {
	l := newList(func(s *string) string { return *s })
	l.height = 3
	l.set(rows)
	return &l
}

func TestCursorStaysWithItsRow(t *testing.T) {
	l := newStrings("a", "b", "c", "d", "e")
	l.move(moveDown)
	l.move(moveDown)
	l.mark(markOne) // c, and down to d
	l.set(numbers("e", "d", "x", "c", "b", "a"))
	if *l.at() != "d" || !slices.Equal(l.marks(), numbers("c")) {
		t.Errorf("at %s, marks %v", *l.at(), l.marks())
	}
	l.set(numbers("e", "x", "b", "a")) // d and c are gone
	if l.cursor != 1 || !slices.Equal(l.marks(), numbers("c")) {
		t.Errorf("at %d, marks %v", l.cursor, l.marks())
	}
	l.set(nil)
	if l.at() != nil || l.cursor != 0 {
		t.Errorf("empty: at %v, cursor %d", l.at(), l.cursor)
	}
	for _, a := range []action{moveDown, moveUp, moveTop, moveBottom, pageDown, pageUp} {
		l.move(a)
	}
	l.set(numbers("a"))
	if *l.at() != "a" {
		t.Error("not at a")
	}
}

func TestRangeOfMarks(t *testing.T) {
	l := newStrings("a", "b", "c", "d", "e")
	l.move(moveDown)
	l.mark(markRange)
	l.set(numbers("z", "a", "b", "c", "d", "e")) // a row comes in above meanwhile
	l.move(moveDown)
	l.move(moveDown)
	l.mark(markRange)
	if !slices.Equal(l.marks(), numbers("b", "c", "d")) {
		t.Errorf("marks %v", l.marks())
	}
}

func TestLayoutDropsWhatIsNeededLeast(t *testing.T) {
	columns := []column{{title: "A", wide: 5}, {title: "B", wide: 5, keep: 2}, {title: "C", wide: 5, share: true}, {title: "D", wide: 5, keep: 1}}
	for w, want := range map[int]string{30: "[5 5 10 5]", 25: "[5 5 5 5]", 24: "[5 5 10 0]", 19: "[5 5 5 0]", 18: "[5 0 10 0]", 10: "[5 0 5 0]"} {
		if got := fmt.Sprint(layout(columns, w).widths); got != want {
			t.Errorf("at %d: %s, want %s", w, got, want)
		}
	}
}

// The cursor is in the list, and in sight, whatever happens.
func TestListKeepsItsCursor(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		l := newStrings()
		for range 30 {
			switch rng.IntN(4) {
			case 0:
				rows := strings.Split("abcdefgh", "")
				rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
				l.set(rows[:rng.IntN(len(rows)+1)])
			case 1:
				l.height = rng.IntN(6)
				l.see()
			case 2:
				l.mark([]action{markOne, markRange}[rng.IntN(2)])
			default:
				l.move(moveDown + action(rng.IntN(int(pageUp-moveDown)+1)))
			}
			if n := len(l.rows); n == 0 && l.cursor != 0 || n > 0 && (l.cursor < 0 || l.cursor >= n) {
				t.Fatalf("seed %d: cursor %d of %d", seed, l.cursor, n)
			}
			if l.top < 0 || l.top > l.cursor || l.cursor >= l.top+max(1, l.height) {
				t.Fatalf("seed %d: cursor %d, top %d, height %d", seed, l.cursor, l.top, l.height)
			}
			lines := l.view(&themes[0], []column{{title: "X", wide: 3, share: true}}, 10, 4, func(s *string) []cell { return []cell{{text: *s}} })
			if len(lines) != 4 || l.at() != nil && !strings.Contains(strings.Join(lines, "\n"), ">") {
				t.Fatalf("seed %d: %q", seed, lines)
			}
		}
	}
}

func TestLogKeepsTheLast(t *testing.T) {
	var l Log
	for i := range 4 * logKept {
		fmt.Fprintf(&l, "line %d\npart", i)
	}
	lines, first := l.since(0)
	if len(lines) > logKept*5/4 || first+len(lines) != 4*logKept || !strings.HasPrefix(lines[len(lines)-1], "part") {
		t.Errorf("%d lines from %d, the last %q", len(lines), first, lines[len(lines)-1])
	}
	again, next := l.since(first + len(lines))
	if len(again) != 0 || next != first+len(lines) {
		t.Errorf("%d lines more, from %d", len(again), next)
	}
	fmt.Fprintf(&l, "\x1b[2J\n")
	if again, _ = l.since(next); len(again) != 1 || again[0] != `part\x1b[2J` {
		t.Errorf("%q", again)
	}
}

// Nothing is said twice.
func TestFailText(t *testing.T) {
	for _, c := range [][3]string{
		{"cancelled", "cancelled: cancelled", "cancelled"}, {"cancelled", "tired", "cancelled: tired"}, {"timeout", "", "timeout"}, {"", "x: x", "x: x"},
		{"cancelled", "cancelled: cancelled: tired", "cancelled: tired"}, {"", "", ""}, {"timeout", "timeouts: 3", "timeout: timeouts: 3"},
	} {
		if got := failText(c[0], c[1]); got != c[2] {
			t.Errorf("%q, %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
