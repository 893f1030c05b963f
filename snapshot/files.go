package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// Files is the seam to the disk: each field does one thing, and a test swaps
// the one it wants to fail. Zero is the real disk; otherwise every field is set.
// Names are full paths.
type Files struct {
	MakeDir func(dir string) error               // 0700, with parents; fine if it is there
	Open    func(name string) (File, error)      // to read
	Edit    func(name string) (File, error)      // to read and change
	Create  func(name string) (File, error)      // 0600, fails if it is there
	Rename  func(from, to string) error          // replaces to
	Remove  func(name string) error              //
	List    func(dir string) ([]string, error)   // base names, sorted
	SyncDir func(dir string) error               // makes names durable
	Lock    func(name string) (io.Closer, error) // ErrLocked if another process has it
	Reserve func(name string, size int64) error  // a file that occupies size bytes
	Room    func(dir string) (int64, error)      // bytes free for us
	// Same reports whether name is still what was opened or locked under it; the
	// error: that cannot be told.
	Same func(name string, open io.Closer) (bool, error)
}

// File is one open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error // data and size are durable when it returns
	Size() (int64, error)
}

// orDisk fills a zero Files.
func (f Files) orDisk() Files {
	if f.Open == nil {
		return disk()
	}
	return f
}

func disk() Files {
	return Files{
		MakeDir: makeDir,
		Open:    func(name string) (File, error) { return openFile(name, os.O_RDONLY) },
		Edit:    func(name string) (File, error) { return openFile(name, os.O_RDWR) },
		Create:  func(name string) (File, error) { return openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL) },
		Rename:  os.Rename,
		Remove:  os.Remove,
		List:    list,
		SyncDir: syncDir,
		Lock:    lock,
		Reserve: reserve,
		Room:    room,
		Same:    isSame,
	}
}

type diskFile struct{ *os.File }

func openFile(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (f diskFile) Sync() error { return syncData(f.File) }

func (f diskFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Whoever made it, the log for one, need not have made its name durable. A
	// parent that may not be read was made by somebody else, long ago.
	err := syncDir(filepath.Dir(dir))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func list(dir string) ([]string, error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(es))
	for i, e := range es {
		names[i] = e.Name()
	}
	sort.Strings(names)
	return names, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// lock takes the file and writes our pid into it. The file stays when the lock
// goes: removing it would let two processes lock two files of one name.
func lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		pid := make([]byte, 20)
		n, _ := f.ReadAt(pid, 0)
		return nil, fmt.Errorf("%w (pid %s)", ErrLocked, strings.TrimSpace(string(pid[:n])))
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil && !noRoom(err) { // a full disk has no room for a pid; the lock holds without it
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

// reserve makes name occupy size bytes, or leaves nothing behind.
func reserve(name string, size int64) error {
	if st, err := os.Stat(name); err == nil && st.Size() == size {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = allocate(f, size)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}

// fill is allocate for a file system that cannot set blocks aside.
func fill(f *os.File, size int64) error {
	zero := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zero)) {
		if _, err := f.WriteAt(zero[:min(int64(len(zero)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

func room(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// writeAside makes a file appear whole: a temporary name, fsync, rename, fsync
// of the folder. It replaces what was there.
func (f Files) writeAside(name string, data []byte) error {
	temp := name + tempEnd
	if err := f.writeTemp(temp, data); err != nil {
		return err
	}
	if err := f.Rename(temp, name); err != nil {
		return errors.Join(err, f.Remove(temp))
	}
	return f.SyncDir(filepath.Dir(name))
}

// writeTemp writes and syncs a file that nothing refers to yet.
func (f Files) writeTemp(temp string, data []byte) error {
	if err := f.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h, err := f.Create(temp)
	if err != nil {
		return err
	}
	if err = writeWhole(h, data, 0); err == nil {
		err = h.Sync()
	}
	if err = errors.Join(err, h.Close()); err != nil {
		f.Remove(temp)
	}
	return err
}

// readAll reads a file of at most limit bytes.
func (f Files) readAll(name string, limit int64) ([]byte, error) {
	h, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	size, err := h.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are allowed", name, size, limit)
	}
	return readPart(h, 0, size)
}

// readPart reads exactly [from, to).
func readPart(r io.ReaderAt, from, to int64) ([]byte, error) {
	b := make([]byte, to-from)
	n, err := r.ReadAt(b, from)
	if n == len(b) {
		return b, nil
	}
	return nil, err
}

// tempEnd marks a file that nothing refers to yet; Open removes those left over.
const tempEnd = ".tmp"
