package unit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// handsOn reports whether a unit may answer with a file.
func (m *Manifest) handsOn() bool {
	for i := range m.Unit.Out {
		if m.Unit.Out[i].Kind == task.Path {
			return true
		}
	}
	return false
}

func isPath(rules []task.Rule, name string) bool {
	for i := range rules {
		if rules[i].Name == name {
			return rules[i].Kind == task.Path
		}
	}
	return false
}

// takeFiles puts the real name of each file handed on in the place of its value,
// after a look that it is what was handed on.
func (a *attempt) takeFiles(ctx context.Context) error {
	var err error
	a.Assignment.Inputs, err = a.local(ctx, a.Manifest.Unit.In, a.Assignment.Inputs)
	if err == nil && a.Assignment.Undo {
		a.undone = a.foldersOf(a.Assignment.Outputs)
		a.Assignment.Outputs, err = a.local(ctx, a.Manifest.Unit.Out, a.Assignment.Outputs)
	}
	return err
}

// foldersOf is where the files lie that an attempt handed on, as far as they are
// there: an undo in a container may delete them.
func (a *attempt) foldersOf(outputs task.Values) (folders []string) {
	if a.Share == nil {
		return nil
	}
	root, err := os.OpenRoot(a.Share.Dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, v := range outputs {
		f, handed, err := task.ParseFile(v.Value)
		if !handed || err != nil || f.Share != a.Share.ID || !isPath(a.Manifest.Unit.Out, v.Name) {
			continue
		}
		dir := filepath.Dir(filepath.FromSlash(f.Name))
		if info, err := root.Lstat(dir); err == nil && info.IsDir() && dir != "." {
			folders = append(folders, filepath.Join(a.Share.Dir, dir))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func (a *attempt) local(ctx context.Context, rules []task.Rule, values task.Values) (task.Values, error) {
	local := append(task.Values(nil), values...)
	var faults []string
	for i, v := range local {
		if !isPath(rules, v.Name) {
			continue
		}
		f, handed, err := task.ParseFile(v.Value)
		if !handed {
			continue
		}
		if err == nil {
			local[i].Value, err = a.openFile(ctx, f)
		}
		if err != nil {
			faults = append(faults, v.Name+": "+err.Error())
		}
	}
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	return local, nil
}

// openFile is a handed-on file's real name. To undo, the file need not be what
// it was: that may be what is to be undone.
func (a *attempt) openFile(ctx context.Context, f task.File) (string, error) {
	switch {
	case a.Share == nil:
		return "", fmt.Errorf("file %s is in share %s, and this executor has no share: start it with one", task.Printable(f.Name), task.Printable(f.Share))
	case a.Share.ID != f.Share:
		return "", fmt.Errorf("file %s is in share %s, and this executor sees share %s", task.Printable(f.Name), task.Printable(f.Share), a.Share.ID)
	}
	file := filepath.Join(a.Share.Dir, filepath.FromSlash(f.Name))
	if !a.Assignment.Undo {
		root, err := os.OpenRoot(a.Share.Dir)
		if err != nil {
			return "", fmt.Errorf("share: %w", err)
		}
		defer root.Close()
		if err := checkFile(ctx, root, f); err != nil {
			return "", fmt.Errorf("file %s: %w", task.Printable(f.Name), err)
		}
		a.handed = append(a.handed, file)
	}
	return file, nil
}

func checkFile(ctx context.Context, root *os.Root, want task.File) error {
	size, sum, err := contentOf(ctx, root, filepath.FromSlash(want.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("is gone: run the unit again that made it")
	case err != nil:
		return err
	case size != want.Size:
		return fmt.Errorf("has %d bytes, and had %d when it was handed on", size, want.Size)
	case sum != want.Sum:
		return fmt.Errorf("has SHA-256 %s, and had %s when it was handed on: somebody wrote to it", sum, want.Sum)
	}
	return nil
}

// contentOf reads a regular file to the end; a link in its place is no file.
func contentOf(ctx context.Context, root *os.Root, name string) (size int64, sum string, err error) {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return 0, "", errors.Join(err, notFile(info))
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	hash := sha256.New()
	if size, err = io.Copy(hash, stoppable{ctx, f}); err != nil {
		return 0, "", err
	}
	return size, hex.EncodeToString(hash.Sum(nil)), nil
}

func notFile(info fs.FileInfo) error {
	switch {
	case info == nil || info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return errors.New("is a folder: hand on a file, such as an archive of it")
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("is a link: hand on the file itself")
	}
	return errNotRegular
}

// stoppable ends a long read when nobody waits for it any more.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// publish moves the files that the unit answers with to where others find them,
// and puts what is handed on in their values' place.
func (a *attempt) publish(ctx context.Context, outputs task.Values) (task.Values, error) {
	published := append(task.Values(nil), outputs...)
	done := map[string]task.File{} // by place within the run's folder
	for i, v := range published {
		if !isPath(a.Manifest.Unit.Out, v.Name) {
			continue
		}
		f, err := a.publishOne(ctx, v.Value, done)
		if err != nil {
			return nil, fmt.Errorf("output %s = %s: %w", v.Name, quote(v.Value), err)
		}
		published[i].Value = f.String()
	}
	return published, nil
}

var errLeadsOut = errors.New("leads out of the work folder: name a file in it, or in $APOLLO_RUN_DIR")

func (a *attempt) publishOne(ctx context.Context, value string, done map[string]task.File) (f task.File, err error) {
	from, name := a.desk.folder, filepath.Clean(value)
	for _, dir := range []string{a.desk.folder, a.runDir} {
		if rest, ok := strings.CutPrefix(name, dir+string(filepath.Separator)); ok {
			from, name = dir, rest
		}
	}
	switch {
	case value == "":
		return f, errors.New("is empty: name a file")
	case !filepath.IsLocal(name):
		return f, errLeadsOut
	}
	if f, again := done[name]; again && from == a.desk.folder {
		return f, nil // one file under two names of outputs
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return f, err
	}
	defer root.Close()
	if err := plainFile(root, name); err != nil {
		return f, err
	}
	if from != a.runDir {
		if err := roomFor(a.runDir, name); err != nil {
			return f, err
		}
		if err := moveFile(ctx, filepath.Join(from, name), filepath.Join(a.runDir, name)); err != nil {
			return f, err
		}
	}
	if f, err = a.describeFile(ctx, name); err == nil {
		done[name] = f
	}
	return f, err
}

// plainFile refuses what is no regular file, and a way there over a link.
func plainFile(root *os.Root, name string) error {
	parts := strings.Split(name, string(filepath.Separator))
	for i := range parts {
		info, err := root.Lstat(filepath.Join(parts[:i+1]...))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errors.New("there is no such file")
		case err != nil:
			return err
		case i == len(parts)-1:
			return notFile(info)
		case !info.IsDir():
			return fmt.Errorf("%s is no folder of its own", quote(parts[i]))
		}
	}
	return nil
}

// describeFile syncs a published file, so that what is handed on outlives a crash.
func (a *attempt) describeFile(ctx context.Context, name string) (f task.File, err error) {
	full := filepath.Join(a.runDir, name)
	if err := errors.Join(os.Chmod(full, 0o444), syncFile(full), syncFile(filepath.Dir(full)), syncFile(a.runDir)); err != nil {
		return f, err
	}
	root, err := os.OpenRoot(a.Share.Dir)
	if err != nil {
		return f, err
	}
	defer root.Close()
	within, err := filepath.Rel(a.Share.Dir, full)
	if err != nil {
		return f, err
	}
	f = task.File{Share: a.Share.ID, Name: filepath.ToSlash(within)}
	f.Size, f.Sum, err = contentOf(ctx, root, within)
	return f, err
}

// roomFor makes the folders that a file goes to, never by a link that the unit left
// there: a container's would lead to where the container itself may not write.
func roomFor(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(name); err == nil {
		return errors.New("a file of that name is in $APOLLO_RUN_DIR already")
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("$APOLLO_RUN_DIR: %w", err)
	}
	return nil
}

// moveFile renames a file, or copies it to another file system.
func moveFile(ctx context.Context, from, to string) error {
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	return copyFile(ctx, from, to)
}

// copyFile shows nobody half a file.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.OpenFile(from, os.O_RDONLY|nonblock|noFollow, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	aside := to + ".part"
	out, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(aside)
	_, err = io.Copy(out, stoppable{ctx, in})
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(aside, to)
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
