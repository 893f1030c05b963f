package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

const (
	imageFile = "snapshot.json"
	prevFile  = "snapshot.prev.json"
	// maxEnvelope bounds snapshot.json: state keys, counters, registrations.
	maxEnvelope = 256 << 20
)

// Image is a saved state: everything up to and including entry Seq.
type Image struct {
	Seq     uint64
	Content []byte // the engine's JSON
}

// envelope is snapshot.json: who may read it, what it stands for, and the name
// of the line file that belongs to it. Its version is in `"format"`.
type envelope struct {
	seq     uint64
	tasks   string // base name of the line file
	lines   uint64
	sum     string // SHA-256 of the line file, hex
	content json.RawMessage
}

// encode writes the one form there is: the checksum in the second line is the
// CRC-32C of every byte behind that line.
func (e envelope) encode() []byte {
	body := fmt.Appendf(nil, "  \"seq\": %d,\n  \"tasks\": {\"file\": %q, \"lines\": %d, \"sha256\": %q},\n  \"content\": ",
		e.seq, e.tasks, e.lines, e.sum)
	body = append(body, e.content...)
	body = append(body, "\n}\n"...)
	head := fmt.Appendf(nil, "{\n  \"format\": %d, \"crc\": \"%08x\",\n", version, crc32.Checksum(body, castagnoli))
	return append(head, body...)
}

// parseEnvelope reads snapshot.json. Whatever it accepts encodes to the same bytes.
func parseEnvelope(b []byte) (*envelope, error) {
	var j struct {
		Format uint64
		Seq    uint64
		Tasks  struct {
			File   string
			Lines  uint64
			SHA256 string
		}
		Content json.RawMessage
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return nil, err
	}
	if j.Format > version {
		return nil, fmt.Errorf("format %d: %w", j.Format, ErrVersion)
	}
	e := &envelope{seq: j.Seq, tasks: j.Tasks.File, lines: j.Tasks.Lines, sum: j.Tasks.SHA256, content: j.Content}
	if !bytes.Equal(e.encode(), b) {
		return nil, errSum
	}
	if e.seq == 0 || e.tasks != taskFile(e.seq) || len(e.sum) != 2*sha256.Size {
		return nil, errShape
	}
	return e, nil
}

// taskFile names the line file of the image at seq.
func taskFile(seq uint64) string { return fmt.Sprintf("tasks-%020d.img", seq) }

func isTaskFile(name string) bool {
	return strings.HasPrefix(name, "tasks-") && strings.HasSuffix(name, ".img")
}

// generations are the two images that are kept, without their content. One that
// is missing or does not check is nil.
type generations struct{ cur, prev *envelope }

// base is the seq of the newest image, and its file.
func (g generations) base() (uint64, string) {
	switch {
	case g.cur != nil:
		return g.cur.seq, imageFile
	case g.prev != nil:
		return g.prev.seq, prevFile
	}
	return 0, imageFile
}

func (g generations) refer(tasks string) bool {
	return g.cur != nil && g.cur.tasks == tasks || g.prev != nil && g.prev.tasks == tasks
}

// readGenerations reads both envelopes; a bad one counts as missing here and is
// reported by ReadImage and Check.
func readGenerations(files Files, dir string, names []string) (g generations, err error) {
	for _, name := range names {
		if name != imageFile && name != prevFile {
			continue
		}
		e, err := readEnvelope(files, dir, name)
		var d *Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return g, err
		}
		e.content = nil
		if name == imageFile {
			g.cur = e
		} else {
			g.prev = e
		}
	}
	return g, nil
}

// readEnvelope gives a *Damage for bytes that do not check.
func readEnvelope(files Files, dir, name string) (*envelope, error) {
	b, err := files.readAll(filepath.Join(dir, name), maxEnvelope)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	e, err := parseEnvelope(b)
	if errors.Is(err, ErrVersion) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return nil, &Damage{File: name, What: err.Error()}
	}
	return e, nil
}

// imageHeader is the first line of a line file.
func imageHeader(seq uint64) (head []byte, salt uint32) {
	s := fmt.Sprintf("#a11img v=%d seq=%d", version, seq)
	salt = crc32.Checksum([]byte(s), castagnoli)
	return sealed(fmt.Sprintf("%s salt=%08x", s, salt), 0), salt
}

// checkTasks reads a line file as a stream and holds it against its SHA-256.
func (e *envelope) checkTasks(f File) error {
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("read image: %w", err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return fmt.Errorf("read image: %w", err)
	}
	if sum(h) != e.sum {
		return &Damage{File: e.tasks, What: "SHA-256 is not the one in the image"}
	}
	return nil
}

// eachLine gives the body of every line, checked.
func (e *envelope) eachLine(f File, fn func([]byte) error) error {
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("read image: %w", err)
	}
	head, salt := imageHeader(e.seq)
	b, err := readPart(f, 0, min(size, int64(len(head))))
	if err != nil {
		return fmt.Errorf("read image: %w", err)
	}
	if !bytes.Equal(b, head) {
		return &Damage{File: e.tasks, What: "header is not that of this image"}
	}
	w := startWalk(e.tasks, header{first: 1, salt: salt}, lines{f: f, at: int64(len(head)), end: size})
	for {
		l, err := w.line()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = fn(l.body)
		}
		if err != nil {
			return err
		}
	}
	if !w.closed || w.last != e.lines {
		return w.fault(w.good, fmt.Sprintf("%d lines, closed: %t; the image says %d", w.last, w.closed, e.lines))
	}
	return nil
}

// wholeImage reads the envelope and checks the line file against it.
func wholeImage(files Files, dir, name string) (*envelope, error) {
	e, err := readEnvelope(files, dir, name)
	if err != nil {
		return nil, err
	}
	return e, e.withFile(files, dir, e.checkTasks)
}

func (e *envelope) withFile(files Files, dir string, fn func(File) error) error {
	f, err := files.Open(filepath.Join(dir, e.tasks))
	if errors.Is(err, fs.ErrNotExist) {
		return &Damage{File: e.tasks, What: "file is missing"}
	}
	if err != nil {
		return fmt.Errorf("read image: %w", err)
	}
	defer f.Close()
	return fn(f)
}

// load gives an image that was found whole.
func (e *envelope) load(files Files, dir string, load func(Image) error, line func([]byte) error) error {
	if err := load(Image{Seq: e.seq, Content: e.content}); err != nil {
		return err
	}
	return e.withFile(files, dir, func(f File) error { return e.eachLine(f, line) })
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
