package snapshot

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// effort multiplies the number of random states: 20 gives 40,000 damaged middles
// and 60,000 torn tails.
var effort = flag.Int("effort", 1, "more random states")

func TestMain(m *testing.M) {
	flag.Parse()
	readSize = 4 << 10 // many refills, and fast opens
	os.Exit(m.Run())
}

// memDisk is a disk in memory that knows what a power cut would leave: bytes
// since a file's last sync and names since the folder's are open to chance.
type memDisk struct {
	mu      sync.Mutex
	names   map[string]*memNode // as programs see them
	durable map[string]*memNode // as the disk has them
	pending []rename            // between the two, in order
	size    int64               // bytes the disk holds; 0 = no end
	locked  bool

	// before is asked before each change; its error is what the change gives.
	before func(op, name string) error
	ops    int
}

// rename sets names at once; nil removes.
type rename map[string]*memNode

type memNode struct {
	data   []byte
	synced []byte
}

func newDisk() *memDisk {
	return &memDisk{names: map[string]*memNode{}, durable: map[string]*memNode{}}
}

const sector = 512

// crash gives a disk as it may be after the power is cut now. keep decides for
// each thing that was not synced.
func (d *memDisk) crash(keep func() bool) *memDisk {
	n := newDisk()
	n.size = d.size
	names := maps.Clone(d.durable)
	for _, r := range d.pending {
		if keep() {
			r.apply(names)
		}
	}
	for name, node := range names {
		b := node.after(keep)
		n.names[name] = &memNode{data: b, synced: bytes.Clone(b)}
	}
	n.durable = maps.Clone(n.names)
	return n
}

// after mixes what was synced and what was written since, sector by sector.
func (f *memNode) after(keep func() bool) []byte {
	size := len(f.synced)
	if keep() {
		size = len(f.data)
	}
	out := make([]byte, size)
	copy(out, f.synced)
	for at := 0; at < len(out); at += sector {
		if end := min(at+sector, len(out)); keep() && at < len(f.data) {
			copy(out[at:end], f.data[at:])
		}
	}
	return out
}

// settle makes everything durable as it is, also what a test changed by hand.
func (d *memDisk) settle() *memDisk {
	d.durable, d.pending = maps.Clone(d.names), nil
	for _, f := range d.names {
		f.synced = bytes.Clone(f.data)
	}
	return d
}

// clone copies the disk as programs see it.
func (d *memDisk) clone() *memDisk {
	n := newDisk()
	n.size = d.size
	for name, f := range d.names {
		n.names[name] = &memNode{data: bytes.Clone(f.data)}
	}
	return n.settle()
}

func (r rename) apply(names map[string]*memNode) {
	for name, node := range r {
		if node == nil {
			delete(names, name)
		} else {
			names[name] = node
		}
	}
}

func (d *memDisk) change(op, name string) error {
	d.ops++
	if d.before != nil {
		return d.before(op, filepath.Base(name))
	}
	return nil
}

func (d *memDisk) set(r rename) {
	r.apply(d.names)
	d.pending = append(d.pending, r)
}

func (d *memDisk) room() int64 {
	if d.size == 0 {
		return 1 << 40
	}
	used := int64(0)
	for _, f := range d.names {
		used += int64(len(f.data))
	}
	return d.size - used
}

type memHandle struct {
	d    *memDisk
	f    *memNode
	name string
}

func (d *memDisk) files() Files {
	return Files{
		MakeDir: func(string) error { return nil },
		Open:    d.open,
		Edit:    d.open,
		Create:  d.create,
		Rename:  d.rename,
		Remove:  d.remove,
		List:    d.list,
		SyncDir: d.syncDir,
		Lock:    d.lock,
		Reserve: d.reserve,
		Room:    func(string) (int64, error) { return d.room(), nil },
		Same:    d.same,
	}
}

func (d *memDisk) open(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.names[name]; f != nil {
		return &memHandle{d, f, name}, nil
	}
	return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
}

func (d *memDisk) create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change("create", name); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, fmt.Errorf("create %s: %w", name, fs.ErrExist)
	}
	f := &memNode{}
	d.set(rename{name: f})
	return &memHandle{d, f, name}, nil
}

func (d *memDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change("rename", to); err != nil {
		return err
	}
	f := d.names[from]
	if f == nil {
		return fmt.Errorf("rename %s: %w", from, fs.ErrNotExist)
	}
	d.set(rename{from: nil, to: f})
	return nil
}

func (d *memDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return fmt.Errorf("remove %s: %w", name, fs.ErrNotExist)
	}
	if err := d.change("remove", name); err != nil {
		return err
	}
	d.set(rename{name: nil})
	return nil
}

func (d *memDisk) list(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for name := range d.names {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok && !strings.Contains(rest, "/") {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (d *memDisk) syncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change("syncdir", dir); err != nil {
		return err
	}
	for _, r := range d.pending {
		r.apply(d.durable)
	}
	d.pending = nil
	return nil
}

type unlock struct{ d *memDisk }

func (u unlock) Close() error { u.d.locked = false; return nil }

func (d *memDisk) lock(string) (io.Closer, error) {
	if d.locked {
		return nil, ErrLocked
	}
	d.locked = true
	return unlock{d}, nil
}

func (d *memDisk) same(name string, open io.Closer) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := open.(*memHandle); ok {
		return d.names[name] == f.f, nil
	}
	return d.locked, nil
}

// reserve is accounted for by a file of zeros, whose names and bytes no one syncs.
func (d *memDisk) reserve(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size == 0 || d.names[name] != nil {
		return nil
	}
	if d.room() < size {
		return syscall.ENOSPC
	}
	d.set(rename{name: &memNode{data: make([]byte, size)}})
	return nil
}

func (h *memHandle) Close() error { return nil }

func (h *memHandle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.f.data)), nil
}

func (h *memHandle) ReadAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if at >= int64(len(h.f.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.f.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// errShortWrite makes a write stop half way and say nothing.
var errShortWrite = errors.New("short write")

func (h *memHandle) WriteAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	err := h.d.change("write", h.name)
	if grow := at + int64(len(b)) - int64(len(h.f.data)); err == nil && grow > h.d.room() {
		err = syscall.ENOSPC
	}
	if err != nil {
		b = b[:len(b)/2]
	}
	if end := at + int64(len(b)); end > int64(len(h.f.data)) {
		h.f.data = append(h.f.data, make([]byte, end-int64(len(h.f.data)))...)
	}
	copy(h.f.data[at:], b)
	if err == errShortWrite {
		err = nil
	}
	return len(b), err
}

func (h *memHandle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change("truncate", h.name); err != nil {
		return err
	}
	h.f.data = slices.Clone(h.f.data[:size])
	return nil
}

func (h *memHandle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change("sync", h.name); err != nil {
		return err
	}
	h.f.synced = bytes.Clone(h.f.data)
	return nil
}

// openDisk opens the store in folder "d" of the disk.
func openDisk(d *memDisk, segment int64) (*Store, error) {
	return Open(Options{Dir: "d", SegmentSize: segment, Files: d.files()}, day)
}

// chances: nothing kept, all kept, or a coin from a seed.
func chance(seed uint64) func() bool {
	switch seed {
	case 0:
		return func() bool { return false }
	case 1:
		return func() bool { return true }
	}
	r := rand.New(rand.NewPCG(seed, 1))
	one := r.IntN(4) + 1 // how often of 5 something is kept
	return func() bool { return r.IntN(5) < one }
}
