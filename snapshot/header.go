package snapshot

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// version of the journal and of the image. Recipe for a change: add the new
// reader beside the old one, raise this, write the new files into testdata/vN,
// keep the old test, and change FORMAT.md in the same commit.
const version = 1

// maxHeader bounds the first line of a file.
const maxHeader = 256

// stamp is how a time is written: UTC, microseconds.
const stamp = "2006-01-02T15:04:05.000000Z"

// header is the first line of a segment. It ties the segment to the one before:
// first = prevLast+1, and prevCRC is the checksum of the line prevLast.
type header struct {
	seg     uint64
	first   uint64
	prevCRC uint32 // 0 when nothing came before
	salt    uint32 // seeds the checksum of every line, so that no other file's line fits
	opened  time.Time
}

// newHeader derives the salt from the rest: no two segments of a store share a
// number and a time, so no two share their salt but by a chance of one in 2^32.
func newHeader(seg, first uint64, prevCRC uint32, opened time.Time) header {
	h := header{seg: seg, first: first, prevCRC: prevCRC, opened: opened.UTC().Truncate(time.Microsecond)}
	h.salt = crc32.Checksum(h.encode(), castagnoli)
	return h
}

// encode gives the line with its newline.
func (h header) encode() []byte {
	s := fmt.Sprintf("#a11 v=%d seg=%d first=%d prevlast=%d prevcrc=%08x salt=%08x opened=%s",
		version, h.seg, h.first, h.first-1, h.prevCRC, h.salt, h.opened.Format(stamp))
	return sealed(s, 0)
}

// sealed closes a '#' line with its own checksum.
func sealed(s string, salt uint32) []byte {
	return fmt.Appendf(nil, "%s crc=%08x\n", s, crc32.Update(salt, castagnoli, []byte(s)))
}

// parseHeader reads a header line without its newline. Whatever it accepts
// encodes to the same bytes.
func parseHeader(b []byte) (header, error) {
	var h header
	if err := checkMagic(b, "#a11 "); err != nil {
		return h, err
	}
	f := fields(string(b))
	h.seg, _ = strconv.ParseUint(f["seg"], 10, 64)
	h.first, _ = strconv.ParseUint(f["first"], 10, 64)
	h.prevCRC, _ = parseHex([]byte(f["prevcrc"]))
	h.salt, _ = parseHex([]byte(f["salt"]))
	h.opened, _ = time.Parse(stamp, f["opened"])
	if h.seg == 0 || h.first == 0 || !same(h.encode(), b) {
		return header{}, errShape
	}
	return h, nil
}

// checkMagic tells a newer file from a damaged one.
func checkMagic(b []byte, magic string) error {
	if len(b) > maxHeader || !bytes.HasPrefix(b, []byte(magic)) {
		return errShape
	}
	v, _, _ := strings.Cut(strings.TrimPrefix(string(b), magic), " ")
	n, err := strconv.ParseUint(strings.TrimPrefix(v, "v="), 10, 32)
	if err != nil || n == 0 {
		return errShape
	}
	if n > version && sumFits(b, 0) {
		return fmt.Errorf("format v=%d: %w", n, ErrVersion)
	}
	return nil
}

// sumFits checks the crc=… at the end of a '#' line.
func sumFits(b []byte, salt uint32) bool {
	i := bytes.LastIndex(b, []byte(" crc="))
	return i >= 0 && same(sealed(string(b[:i]), salt), b)
}

// same compares an encoded line with the bytes of one read without newline.
func same(encoded, read []byte) bool {
	return bytes.Equal(encoded[:len(encoded)-1], read)
}

// fields splits "k=v k=v"; words without '=' are left out.
func fields(s string) map[string]string {
	m := make(map[string]string)
	for w := range strings.FieldsSeq(s) {
		if k, v, ok := strings.Cut(w, "="); ok {
			m[k] = v
		}
	}
	return m
}

// encodeEnd gives the line that closes a segment: nothing follows it, and every
// line before it was durable when it was written.
func encodeEnd(last, entries uint64, salt uint32) []byte {
	return sealed(fmt.Sprintf("#end last=%d entries=%d", last, entries), salt)
}

// isEnd reports whether b is the closing line of a file with this salt,
// whatever its numbers; a reader compares those with encodeEnd.
func isEnd(b []byte, salt uint32) bool {
	return len(b) <= maxHeader && bytes.HasPrefix(b, []byte("#end ")) && sumFits(b, salt)
}

// segmentName sorts by number, and shows the first entry.
func segmentName(seg, first uint64) string {
	return fmt.Sprintf("journal-%010d-%020d.log", seg, first)
}

// parseSegmentName is the reverse; ok is false for any other file.
func parseSegmentName(name string) (seg, first uint64, ok bool) {
	s, ok1 := strings.CutPrefix(name, "journal-")
	s, ok2 := strings.CutSuffix(s, ".log")
	a, b, ok3 := strings.Cut(s, "-")
	seg, err1 := strconv.ParseUint(a, 10, 64)
	first, err2 := strconv.ParseUint(b, 10, 64)
	ok = ok1 && ok2 && ok3 && err1 == nil && err2 == nil && segmentName(seg, first) == name
	return seg, first, ok
}
