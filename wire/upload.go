package wire

import (
	"fmt"
	"unicode/utf8"
)

// An upload is a mission file in one control frame, or in several of which all
// but the last say part=true; only the last one is answered. The connection keeps
// the file for op=run.

// MaxUpload is the most text of one upload, over all its parts.
const MaxUpload = 4 << 20

// maxFileName bounds what a file is called: every fault begins with it.
const maxFileName = 1024

// AppendUpload appends an upload in frames of at most limit bytes of text.
func AppendUpload(dst []byte, file string, text []byte, limit int) ([]byte, error) {
	piece := (limit - len(file)*2 - 256) / 2 // an escape makes two bytes of one
	if len(text) > MaxUpload || piece < utf8.UTFMax {
		return dst, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("%s: %d bytes, want at most %d", cut(file, 200), len(text), MaxUpload)}
	}
	for {
		n := len(text)
		if n > piece {
			n = wholeRunes(text[:piece])
		}
		dst = appendUploadPart(dst, file, text[:n], n < len(text))
		if text = text[n:]; len(text) == 0 {
			return dst, nil
		}
	}
}

func appendUploadPart(dst []byte, file string, text []byte, more bool) []byte {
	dst, at := beginControl(dst, OpUpload)
	dst = appendText(dst, "file", file)
	dst = appendBytes(dst, "text", text)
	return endMessage(appendFlag(dst, "part", more), at)
}

// wholeRunes is how much of the text does not end in half a character; a text
// that is no UTF-8 may be cut anywhere.
func wholeRunes[T string | []byte](text T) int {
	for i := len(text); i > 0 && i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i-1]) {
			if r, size := utf8.DecodeRuneInString(string(text[i-1:])); r == utf8.RuneError && size <= 1 {
				return max(i-1, 1)
			}
			break
		}
	}
	return len(text)
}

// Upload puts the parts of an upload together.
type Upload struct {
	File string
	Text []byte
	open bool
	err  error // the first fault; the parts after it are not kept
}

// Open reports whether a part has come and the last frame has not.
func (u *Upload) Open() bool { return u.open }

// Add takes a frame of an upload; done says that it was the last. The first fault
// is told when it is.
func (u *Upload) Add(m *Message) (done bool, err error) {
	f := fields{m: m}
	done = !f.flag("part")
	file, text := f.need("file"), f.bytes("text")
	switch {
	case u.err != nil:
	case f.err != nil:
		u.err = f.err
	case u.open && file != u.File:
		u.err = &Error{Code: CodeInvalid, Message: fmt.Sprintf("a part of %q comes in the upload of %q", cut(file, 200), cut(u.File, 200))}
	case len(file) > maxFileName:
		u.err = &Error{Code: CodeInvalid, Message: fmt.Sprintf("the name of the file is over %d bytes", maxFileName)}
	case len(u.Text)+len(text) > MaxUpload:
		u.err = &Error{Code: CodeTooLarge, Message: fmt.Sprintf("%s: over %d bytes", cut(file, 200), MaxUpload)}
	}
	u.open = !done
	if u.err != nil {
		u.Text = nil
		return done, u.err
	}
	u.File, u.Text = file, append(u.Text, text...)
	return done, nil
}
