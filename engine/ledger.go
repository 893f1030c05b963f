package engine

// ledger is the newest late results, as a ring.
type ledger struct {
	lines []ledgerLine
	next  int // where the next line goes once the ring is full
}

type ledgerLine struct {
	lateResult
	Time int64
}

// maxLedger is how many lines memory keeps; the journal has them all.
const maxLedger = 10_000

func (l *ledger) add(line ledgerLine) {
	if len(l.lines) < maxLedger {
		l.lines = append(l.lines, line)
		return
	}
	l.lines[l.next] = line
	l.next = (l.next + 1) % maxLedger
}

// newest is line n counted back from the newest, which is 0.
func (l *ledger) newest(n int) *ledgerLine {
	return &l.lines[(l.next+2*len(l.lines)-1-n)%len(l.lines)]
}

// copied is all lines in the order in which they came.
func (l *ledger) copied() []ledgerLine {
	return append(append(make([]ledgerLine, 0, len(l.lines)), l.lines[l.next:]...), l.lines[:l.next]...)
}
