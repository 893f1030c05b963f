package engine

import (
	"errors"
	"testing"
)

// count gives n items, then err.
func count(n int, err error) func(give func(int) error) error {
	return func(give func(int) error) error {
		for i := range n {
			if err := give(i); err != nil {
				return err
			}
		}
		return err
	}
}

func TestAheadKeepsOrder(t *testing.T) {
	for _, n := range []int{0, 1, aheadItems - 1, aheadItems, aheadItems + 1, 20 * aheadItems} {
		next := 0
		err := ahead(count(n, nil), func(i int) error {
			if i != next {
				t.Fatalf("%d of %d comes as %d", next, n, i)
			}
			next++
			return nil
		})
		if err != nil || next != n {
			t.Errorf("%d of %d were taken: %v", next, n, err)
		}
	}
}

func TestAheadEndsAtTheFirstError(t *testing.T) {
	bad, worse := errors.New("bad"), errors.New("worse")
	for _, n := range []int{5, aheadItems, 40 * aheadItems} {
		for name, c := range map[string]struct {
			read, take error
			want       error
		}{
			"the reader's":                     {bad, nil, bad},
			"the taker's":                      {nil, worse, worse},
			"the taker's, which stands before": {bad, worse, worse},
		} {
			taken := 0
			err := ahead(count(n, c.read), func(i int) error {
				if taken++; i == n/2 {
					return c.take
				}
				return nil
			})
			if err != c.want {
				t.Errorf("%s of %d: %v, want %v", name, n, err, c.want)
			}
			if want := n/2 + 1; c.take != nil && taken != want {
				t.Errorf("%s of %d: %d were taken, want %d", name, n, taken, want)
			}
			if c.take == nil && taken != n {
				t.Errorf("%s of %d: %d were taken before it", name, n, taken)
			}
		}
	}
}
