package snapshot

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strconv"
)

// Limits of one batch. They bound what a reader has to hold, so they are part
// of the format. Overhead is what a line costs beyond its body at most: a
// caller that splits counts len(body)+Overhead.
const (
	MaxLine  = 1 << 20
	MaxBatch = 2 << 20
	MaxLines = 4096
	Overhead = 8 + 1 + 20 + 1 + 20 + 1 + 1 + 1 + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line is one framed entry, without its newline:
//
//	33ad6f3b 123456 123454 = body
//	crc      seq    batch  mark
//
// The checksum is CRC-32C, seeded with the file's salt, over all bytes after
// "crc ". There is exactly one way to write a line; parseLine refuses others.
type line struct {
	seq, batch uint64
	last       bool // mark '=': the batch is whole; '+': more of it follows
	body       []byte
	crc        uint32
}

var (
	errShort = errors.New("line is cut short")
	errSum   = errors.New("checksum does not match")
	errShape = errors.New("line is not in its one written form")
)

// appendLine frames l at the end of dst, newline included; l.crc is not read.
// It also returns the checksum it wrote.
func appendLine(dst []byte, salt uint32, l line) ([]byte, uint32) {
	at := len(dst)
	dst = append(dst, "00000000 "...)
	dst = strconv.AppendUint(dst, l.seq, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, l.batch, 10)
	if l.last {
		dst = append(dst, " = "...)
	} else {
		dst = append(dst, " + "...)
	}
	dst = append(dst, l.body...)
	sum := crcOf(salt, dst[at+9:])
	putHex(dst[at:at+8], sum)
	return append(dst, '\n'), sum
}

// parseLine reads a line without its newline. The body is a part of b.
func parseLine(b []byte, salt uint32) (line, error) {
	var l line
	if len(b) < 9 || len(b) > MaxLine {
		return l, errShort
	}
	sum, ok := parseHex(b[:8])
	if !ok || b[8] != ' ' {
		return l, errShape
	}
	if crcOf(salt, b[9:]) != sum {
		return l, errSum
	}
	return parseFields(b[9:], sum)
}

func parseFields(b []byte, sum uint32) (line, error) {
	l := line{crc: sum}
	var ok1, ok2 bool
	l.seq, b, ok1 = parseUint(b)
	l.batch, b, ok2 = parseUint(b)
	if !ok1 || !ok2 || l.batch > l.seq || len(b) < 3 || b[1] != ' ' {
		return l, errShape
	}
	if b[0] != '=' && b[0] != '+' || !printable(b[2:]) {
		return l, errShape
	}
	l.last = b[0] == '='
	l.body = b[2:]
	return l, nil
}

// parseUint takes a decimal from 1 up, without leading zeros, and the space after it.
func parseUint(b []byte) (n uint64, rest []byte, ok bool) {
	const safe = 19 // digits of any number that fits
	for i, c := range b {
		if c == ' ' {
			return n, b[i+1:], i > 0 && b[0] != '0'
		}
		d := uint64(c - '0')
		if c < '0' || c > '9' || i >= safe && n > (math.MaxUint64-d)/10 {
			return 0, nil, false
		}
		n = n*10 + d
	}
	return 0, nil, false
}

const hexDigits = "0123456789abcdef"

// putHex writes v as eight lower-case digits.
func putHex(dst []byte, v uint32) {
	_ = dst[7]
	for i := 7; i >= 0; i-- {
		dst[i] = hexDigits[v&15]
		v >>= 4
	}
}

func parseHex(b []byte) (v uint32, ok bool) {
	if len(b) != 8 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint32(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// printable reports whether every byte is 0x20..0x7e, eight at a time: a byte
// under 0x20 borrows, 0x7f carries, and one over 0x7f has its top bit already.
func printable(b []byte) bool {
	const low, one, top = 0x2020202020202020, 0x0101010101010101, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		v := binary.LittleEndian.Uint64(b)
		if (v|(v-low)|(v+one))&top != 0 {
			return false
		}
	}
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

// crcOf is the checksum of a line's bytes.
func crcOf(salt uint32, b []byte) uint32 { return crc32.Update(salt, castagnoli, b) }
