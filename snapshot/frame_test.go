package snapshot

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestLineBytes(t *testing.T) {
	got, _ := appendLine(nil, 0x5eed1234, line{seq: 123456, batch: 123454, last: true, body: []byte("2026-11-29T14:00:00.000274Z seal")})
	want := "6fda2ad5 123456 123454 = 2026-11-29T14:00:00.000274Z seal\n"
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestParseLineRefuses(t *testing.T) {
	const salt = 7
	seal := func(s string) []byte { // a right checksum before a wrong text
		b, _ := appendLine(nil, salt, line{seq: 1, batch: 1, body: []byte("x")})
		b = append(b[:9], s...)
		putHex(b, crcOf(salt, b[9:]))
		return b
	}
	if _, err := parseLine(seal("12 11 + a b"), salt); err != nil {
		t.Fatalf("good line: %v", err)
	}
	for _, s := range []string{
		"", "12", "12 11", "12 11 ", "12 11 +", "12 11 +x", "12 11 - x", "12 11  + x", " 12 11 + x",
		"012 11 + x", "12 011 + x", "0 0 = x", "1 0 = x", "11 12 + x", "+12 11 + x", "12 11 + x\x1b", "12 11 + \xff",
		"18446744073709551616 1 = x", "99999999999999999999 1 = x", "1a 1 = x", "12 11 + a\nb", "12 11 + a\x00",
	} {
		if l, err := parseLine(seal(s), salt); err == nil {
			t.Errorf("%q was read as %+v", s, l)
		}
	}
	good := seal("12 11 + a b")
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if _, err := parseLine(b, salt); err == nil {
				t.Errorf("flip of bit %d in byte %d was not seen", bit, i)
			}
		}
	}
	if _, err := parseLine(good, salt+1); !errors.Is(err, errSum) {
		t.Errorf("line of another file: %v", err)
	}
	if _, err := parseLine(bytes.ToUpper(good), salt); err == nil && !bytes.Equal(bytes.ToUpper(good), good) {
		t.Error("upper case checksum was read")
	}
}

func TestUintEdges(t *testing.T) {
	for _, tc := range []struct {
		in string
		n  uint64
		ok bool
	}{
		{"1 ", 1, true}, {"18446744073709551615 x", math.MaxUint64, true}, {"18446744073709551616 ", 0, false},
		{"28446744073709551615 ", 0, false}, {"", 0, false}, {" ", 0, false}, {"1", 0, false}, {"00 ", 0, false}, {"0 ", 0, false},
	} {
		if n, _, ok := parseUint([]byte(tc.in)); ok != tc.ok || ok && n != tc.n {
			t.Errorf("%q: %d %t", tc.in, n, ok)
		}
	}
}

func TestPrintable(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				b := bytes.Repeat([]byte{'~'}, n)
				b[at] = byte(c)
				if got, want := printable(b), c >= 0x20 && c < 0x7f; got != want {
					t.Fatalf("byte %#x at %d of %d: %t", c, at, n, got)
				}
			}
		}
	}
}

func TestHeader(t *testing.T) {
	h := newHeader(42, 123456, 0x9f31ab02, time.Date(2026, 11, 29, 15, 0, 0, 274999, time.FixedZone("x", 3600)))
	want := "#a11 v=1 seg=42 first=123456 prevlast=123455 prevcrc=9f31ab02 salt=63b40bfb opened=2026-11-29T14:00:00.000274Z crc=861d2e4e\n"
	b := h.encode()
	if string(b) != want {
		t.Errorf("got  %q\nwant %q", b, want)
	}
	got, err := parseHeader(b[:len(b)-1])
	if err != nil || got != h {
		t.Errorf("read as %+v, %v", got, err)
	}
	for i := range b[:len(b)-1] {
		c := bytes.Clone(b[:len(b)-1])
		c[i] ^= 1
		if _, err := parseHeader(c); err == nil {
			t.Errorf("flip in byte %d was not seen", i)
		}
	}
	newer := sealed(strings.Replace(want[:strings.Index(want, " crc=")], "v=1", "v=2", 1)+" more=1", 0)
	if _, err := parseHeader(newer[:len(newer)-1]); !errors.Is(err, ErrVersion) {
		t.Errorf("newer header: %v", err)
	}
}

func TestSegmentName(t *testing.T) {
	for _, name := range []string{
		"", "journal-1-1.log", "journal-0000000001-00000000000000000001.log.torn", "journal-000000001x-00000000000000000001.log",
		"journal-0000000001-00000000000000000001", "journal--0000000001.log", "xjournal-0000000001-00000000000000000001.log",
	} {
		if _, _, ok := parseSegmentName(name); ok {
			t.Errorf("%q was read", name)
		}
	}
	if seg, first, ok := parseSegmentName(segmentName(12345678901, math.MaxUint64)); !ok || seg != 12345678901 || first != math.MaxUint64 {
		t.Error(seg, first, ok)
	}
}

func FuzzLine(f *testing.F) {
	good, _ := appendLine(nil, 1, line{seq: 10, batch: 9, last: true, body: []byte("a=1 b=\"x y\"")})
	f.Add(good[:len(good)-1], uint32(1))
	f.Add([]byte("00000000 1 1 = "), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, salt uint32) {
		if len(b) > 9 { // let what is behind the checksum be looked at
			b = bytes.Clone(b)
			putHex(b, crcOf(salt, b[9:]))
		}
		l, err := parseLine(b, salt)
		if err != nil {
			return
		}
		if again, _ := appendLine(nil, salt, l); !same(again, b) {
			t.Errorf("%q was written back as %q", b, again)
		}
	})
}

func FuzzHeader(f *testing.F) {
	b := newHeader(1, 1, 0, day).encode()
	f.Add(b[:len(b)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range [][]byte{b, resealed(b)} {
			if h, err := parseHeader(c); err == nil && !same(h.encode(), c) {
				t.Errorf("%q was written back as %q", c, h.encode())
			}
		}
	})
}

// resealed gives a '#' line the checksum it should have.
func resealed(b []byte) []byte {
	i := bytes.LastIndex(b, []byte(" crc="))
	if i < 0 {
		return b
	}
	c := sealed(string(b[:i]), 0)
	return c[:len(c)-1]
}
