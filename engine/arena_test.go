package engine

import (
	"bytes"
	"testing"
)

func TestArenaClasses(t *testing.T) {
	for n := 1; n < 1<<20; n += 1 + n/50 {
		class := classOf(n)
		if class < 0 || class >= cellSizes || classBytes(class) < n {
			t.Fatalf("%d bytes: class %d of %d bytes", n, class, classBytes(class))
		}
		if class > 0 && classBytes(class-1) >= n {
			t.Fatalf("%d bytes: class %d, but the one below would do", n, class)
		}
	}
}

func TestArenaKeepsTexts(t *testing.T) {
	var a arena
	held := map[text][]byte{}
	for round := range 200 {
		for i := range 40 {
			b := bytes.Repeat([]byte{byte(round), byte(i)}, (round*37+i*101)%3000+1)
			name := a.put(b)
			if _, twice := held[name]; twice {
				t.Fatalf("cell %d given out twice", name)
			}
			held[name] = b
		}
		for name, want := range held {
			if !bytes.Equal(a.get(name), want) {
				t.Fatalf("round %d: cell %d changed", round, name)
			}
			if len(want)%3 == 0 {
				a.drop(name)
				delete(held, name)
			}
		}
	}
	for name := range held {
		a.drop(name)
	}
	if a.used != 0 {
		t.Errorf("%d bytes held at the end", a.used)
	}
}
