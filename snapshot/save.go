package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"slices"
)

const (
	flushSize = 256 << 10
	// syncSize bounds the dirty pages an image leaves for one sync, so that the
	// journal's syncs do not queue behind all of it.
	syncSize = 8 << 20
)

// ImageWriter writes one image aside. One goroutine uses it, another than the
// appender's if it likes; it ends with Commit or Abort. After an error, Abort.
type ImageWriter struct {
	s      *Store
	e      envelope
	f      File
	salt   uint32
	buf    []byte
	at     int64 // bytes written
	synced int64
	sum    hash.Hash
}

// NewImage begins the image of everything up to and including entry seq, which
// must be durable and after the newest image; else ErrImage. One at a time.
func (s *Store) NewImage(seq uint64) (*ImageWriter, error) {
	if err := s.Look(); err != nil {
		return nil, err
	}
	if err := s.startSaving(seq); err != nil {
		return nil, err
	}
	w := &ImageWriter{s: s, e: envelope{seq: seq, tasks: taskFile(seq)}, sum: sha256.New()}
	temp := s.path(w.e.tasks + tempEnd)
	err := s.files.Remove(temp)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		w.f, err = s.files.Create(temp)
	}
	if err != nil {
		s.stopSaving(nil)
		return nil, fmt.Errorf("image at seq %d: %w", seq, err)
	}
	w.buf, w.salt = imageHeader(seq)
	return w, nil
}

func (s *Store) startSaving(seq uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	base, _ := s.images.base()
	switch {
	case s.saving:
		return fmt.Errorf("at seq %d: %w: another is being written", seq, ErrImage)
	case seq <= base:
		return fmt.Errorf("at seq %d: %w: the newest is at %d", seq, ErrImage, base)
	case seq > s.view.last:
		return fmt.Errorf("at seq %d: %w: the journal ends at %d", seq, ErrImage, s.view.last)
	}
	s.saving = true
	return nil
}

func (s *Store) stopSaving(g *generations) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = false
	if g != nil {
		s.images = *g
	}
}

// Line adds one line: printable ASCII, not empty, without framing.
func (w *ImageWriter) Line(b []byte) error {
	if len(b)+Overhead > MaxLine {
		return fmt.Errorf("image line of %d bytes: %w", len(b), ErrTooLarge)
	}
	if len(b) == 0 || !printable(b) {
		return fmt.Errorf("image line: %w", ErrEntry)
	}
	w.e.lines++
	w.buf, _ = appendLine(w.buf, w.salt, line{seq: w.e.lines, batch: w.e.lines, last: true, body: b})
	if len(w.buf) < flushSize {
		return nil
	}
	return w.flush()
}

func (w *ImageWriter) flush() error {
	if err := writeWhole(w.f, w.buf, w.at); err != nil {
		return fmt.Errorf("write %s: %w", w.e.tasks, err)
	}
	w.sum.Write(w.buf)
	w.at += int64(len(w.buf))
	w.buf = w.buf[:0]
	if w.at-w.synced < syncSize {
		return nil
	}
	return w.sync()
}

func (w *ImageWriter) sync() error {
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", w.e.tasks, err)
	}
	w.synced = w.at
	return nil
}

// Commit makes the image durable and the newest; the one before it is kept, older
// ones go. content is the engine's JSON. After an error the image may or may not
// be on disk, the one before it is, and the journal's store is as good as ever.
func (w *ImageWriter) Commit(content []byte) error {
	g, err := w.commit(content)
	if err != nil {
		return errors.Join(fmt.Errorf("image at seq %d: %w", w.e.seq, err), w.Abort())
	}
	w.s.stopSaving(g)
	w.s = nil
	return nil
}

func (w *ImageWriter) commit(content []byte) (*generations, error) {
	w.e.content = bytes.TrimSpace(content)
	if !json.Valid(w.e.content) {
		return nil, errors.New("its content is not JSON")
	}
	if err := w.s.Look(); err != nil { // it would be named in another's folder
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	doc := w.e.encode()
	if len(doc) > maxEnvelope {
		return nil, fmt.Errorf("%s of %d bytes: %w", imageFile, len(doc), ErrTooLarge)
	}
	s := w.s
	temp := s.path(imageFile + tempEnd)
	if err := s.files.writeTemp(temp, doc); err != nil {
		return nil, err
	}
	if err := s.keepPrevious(); err != nil {
		return nil, err
	}
	if err := s.files.Rename(temp, s.path(imageFile)); err != nil {
		return nil, err
	}
	if err := s.files.SyncDir(s.dir); err != nil {
		return nil, err
	}
	return s.afterCommit()
}

// finish writes the closing line and gives the line file its name, durably,
// before anything refers to it.
func (w *ImageWriter) finish() error {
	w.buf = append(w.buf, encodeEnd(w.e.lines, w.e.lines, w.salt)...)
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	err := w.f.Close()
	w.f = nil
	if err != nil {
		return err
	}
	w.e.sum = sum(w.sum)
	name := w.s.path(w.e.tasks)
	if err := w.s.files.Rename(name+tempEnd, name); err != nil {
		return err
	}
	return w.s.files.SyncDir(w.s.dir)
}

// keepPrevious makes the newest image the previous one, unless it is bad: then
// the previous one is worth more.
func (s *Store) keepPrevious() error {
	s.mu.Lock()
	good := s.images.cur != nil
	s.mu.Unlock()
	if !good {
		return nil
	}
	err := s.files.Rename(s.path(imageFile), s.path(prevFile))
	if errors.Is(err, fs.ErrNotExist) { // an earlier try got this far
		return nil
	}
	return err
}

// afterCommit looks at what is on disk now, rather than at what should be, and
// removes the line files that no image needs.
func (s *Store) afterCommit() (*generations, error) {
	names, err := s.files.List(s.dir)
	if err != nil {
		return nil, err
	}
	g, err := readGenerations(s.files, s.dir, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if isTaskFile(name) && !g.refer(name) {
			if err := s.files.Remove(s.path(name)); err != nil {
				s.log.Warn("old image not removed", "file", name, "error", err)
			}
		}
	}
	return &g, nil
}

// Abort gives the image up. It is safe to call after Commit.
func (w *ImageWriter) Abort() error {
	if w.s == nil {
		return nil
	}
	s := w.s
	w.s = nil
	var err error
	if w.f != nil {
		err = w.f.Close()
		err = errors.Join(err, s.files.Remove(s.path(w.e.tasks+tempEnd)))
	}
	s.stopSaving(nil)
	if err != nil {
		return fmt.Errorf("abort image: %w", err)
	}
	return nil
}

// ReadImage gives the newest image that checks: first load, then line for every
// line, in order. Falling back to the one before it is a warning. ok is false
// when there is none, and the journal is there from its first entry; if it is
// not, the error is a *Damage. Errors of load and line are returned as they are.
func (s *Store) ReadImage(load func(Image) error, line func([]byte) error) (ok bool, err error) {
	s.mu.Lock()
	v := s.view
	s.mu.Unlock()
	e, bad, err := chooseImage(s.files, s.dir)
	if err != nil {
		return false, err
	}
	for name, why := range bad {
		s.log.Warn("image does not check", "file", name, "error", why)
		s.forget(name)
	}
	if err := covers(v, e); err != nil || e == nil {
		return false, err
	}
	return true, e.load(s.files, s.dir, load, line)
}

// covers checks that the journal goes on where the image, if any, ends.
func covers(v view, e *envelope) error {
	base := uint64(0)
	if e != nil {
		base = e.seq
	}
	if len(v.segs) == 0 || v.segs[0].h.first <= base+1 {
		return nil
	}
	return missing(v.segs[0], base)
}

// forget notes that an image turned out bad, so that it never replaces a good one.
func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == imageFile {
		s.images.cur = nil
	} else {
		s.images.prev = nil
	}
}

// chooseImage finds the newest image that checks as a whole, and says what is
// wrong with those before it.
func chooseImage(files Files, dir string) (e *envelope, bad map[string]error, err error) {
	names, err := files.List(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read image: %w", err)
	}
	bad = make(map[string]error)
	for _, name := range []string{imageFile, prevFile} {
		if !slices.Contains(names, name) {
			continue
		}
		e, err := wholeImage(files, dir, name)
		if err == nil {
			return e, bad, nil
		}
		if !errors.Is(err, ErrDamaged) {
			return nil, nil, err
		}
		bad[name] = err
	}
	return nil, bad, nil
}
