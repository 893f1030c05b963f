package unit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// Image is what a unit of engine container runs in.
type Image struct {
	Name      string
	Network   bool     // off unless declared
	Arguments []string // for podman or docker run: the host's, then the manifest's
}

var imageKeys = []string{"image", "network", "arguments"}

func (m *Manifest) readImage(t *table, d Defaults) {
	if m.Engine != Container {
		t.onlyFor(Container, imageKeys)
		return
	}
	i := &Image{Name: t.text("image", ""), Network: t.flag("network", false)}
	i.Arguments = append(slices.Clip(d.ContainerArgs), t.texts("arguments", nil)...)
	if i.Name == "" && !t.sheet.hasFault("image") {
		t.fault("image", "is missing: what should the container be made of?")
	}
	if strings.HasPrefix(i.Name, "-") || strings.ContainsAny(i.Name, " \t\r\n\x00") {
		t.fault("image", fmt.Sprintf("%q is no image's name", task.Printable(i.Name)))
	}
	if strings.Contains(strings.Join(i.Arguments, ""), "\x00") {
		t.fault("arguments", "holds a NUL byte")
	}
	m.Container = i
}

// dockerSocket is where docker's daemon listens, unless DOCKER_HOST says.
const dockerSocket = "/var/run/docker.sock"

// findRuntime is the file of podman, or else of docker.
func findRuntime() (string, error) {
	path := os.Getenv("PATH")
	if file := inPath("podman", path); file != "" {
		return file, nil
	}
	file := inPath("docker", path)
	if file == "" {
		return "", errors.New("neither podman nor docker is in PATH: install one")
	}
	if _, err := os.Stat(dockerSocket); err != nil && os.Getenv("DOCKER_HOST") == "" {
		return "", fmt.Errorf("docker is installed, but its daemon does not run (no %s), and podman is not in PATH", dockerSocket)
	}
	return file, nil
}

// clientVariables are what podman and docker themselves look at.
var clientVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT",
}

// box is an attempt's containers, one after the other.
type box struct {
	image string   // its id, which stays what it is
	name  string   // of the container that runs; empty: none
	env   []string // the client's own
	mark  string   // file that tells who sweeps which container to end
}

// imageLimit is how long a question about an image may take.
const imageLimit = 30 * time.Second

// openBox looks for the image, and fails if it is not there: an attempt
// downloads nothing.
func (a *attempt) openBox(ctx context.Context) error {
	if a.Manifest.Engine != Container {
		return nil
	}
	for _, name := range clientVariables {
		if value, there := inherited(a.Environ, name); there {
			a.box.env = append(a.box.env, name+"="+value)
		}
	}
	a.box.mark = filepath.Join(a.Work.disk.dir, containerMark)
	var out, last tail
	image, runtime := a.Manifest.Container.Name, a.Manifest.found
	args := []string{runtime, "image", "inspect", "--format", "{{.Id}}", image}
	e := a.drive(ctx, command{runtime, args, a.box.env}, imageLimit, func(stderr bool, chunk []byte) {
		if stderr {
			last.add(chunk)
		} else {
			out.add(chunk)
		}
	})
	if e.why != exitedWell {
		e.lastLine = last.line()
		return fmt.Errorf("image %s is not on this host (%s pull %s fetches it): %s",
			task.Printable(image), filepath.Base(runtime), task.Printable(image), e.describe("the look for it", imageLimit))
	}
	a.box.image = strings.TrimPrefix(out.line(), "sha256:")
	return nil
}

// containerCommand runs a step's program in a container. Files have the same
// names inside and outside; values go by the client's environment, where no
// list of processes shows them.
func (a *attempt) containerCommand(step []string) (command, error) {
	m := a.Manifest
	a.box.name = "apollo11-" + strings.ToLower(rand.Text())
	args := []string{m.found, "run", "--rm", "--name", a.box.name, "--workdir", a.desk.folder}
	if !m.Container.Network {
		args = append(args, "--network", "none")
	}
	if filepath.Base(m.found) == "docker" && os.Geteuid() > 0 {
		args = append(args, "--user", fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())) // else its files are root's
	}
	for _, mount := range a.mounts() {
		if strings.ContainsAny(mount.path, ",\"\n") {
			return command{}, fmt.Errorf("%s: no container can have a folder with a comma, a quote or a new line in its name", strconv.Quote(mount.path))
		}
		option := "type=bind,source=" + mount.path + ",target=" + mount.path
		if mount.readOnly {
			option += ",readonly"
		}
		args = append(args, "--mount", option)
	}
	for _, pair := range a.env {
		name, _, _ := strings.Cut(pair, "=")
		args = append(args, "--env", name)
	}
	args = append(append(args, m.Container.Arguments...), "--entrypoint", step[0], a.box.image)
	err := os.WriteFile(a.box.mark, []byte(m.found+"\n"+a.box.name), 0o600)
	return command{m.found, append(args, step[1:]...), slices.Concat(a.box.env, a.env)}, err
}

type mount struct {
	path     string
	readOnly bool
}

func (a *attempt) mounts() []mount {
	list := []mount{{a.desk.folder, false}, {a.desk.files, false}, {a.Manifest.Dir, true}}
	if a.runDir != "" {
		list = append(list, mount{a.runDir, false})
	}
	for _, file := range a.handed {
		list = append(list, mount{file, true})
	}
	for _, dir := range a.undone {
		list = append(list, mount{dir, false})
	}
	return list
}

// kill ends the container by its name; its client then ends by itself.
func (b *box) kill(runtime string) {
	p, err := os.StartProcess(runtime, []string{runtime, "kill", b.name}, &os.ProcAttr{Dir: "/", Env: b.env})
	if err == nil {
		p.Release() // it is reaped with all that the step leaves
	}
}

// limitHint is added where the host lets no container raise its limits, which
// podman's own words do not say how to help.
const limitHint = `; this host needs unit.container_args = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"] in config.toml`

func (b *box) hint(e ending) string {
	if b.image != "" && e.why == exitedBadly && strings.Contains(e.lastLine, "setting rlimit") {
		return limitHint
	}
	return ""
}

// closeBox makes sure that a step's container is gone.
func (a *attempt) closeBox(e ending) {
	if a.box.name == "" {
		return
	}
	if e.why > exitedBadly || e.signal != "" {
		runtime := a.Manifest.found
		args := append([]string{runtime}, removal(runtime, a.box.name)...)
		a.drive(context.Background(), command{runtime, args, a.box.env}, imageLimit, func(bool, []byte) {})
	}
	os.Remove(a.box.mark)
	a.box.name = ""
}

func removal(runtime, name string) []string {
	if filepath.Base(runtime) == "docker" {
		return []string{"rm", "--force", name}
	}
	return []string{"rm", "--force", "--ignore", "--time", "0", name}
}

// containerMark lies in a workplace while a container runs: the runtime's file
// and the container's name, a line each.
const containerMark = ".apollo11-container"

// endContainer ends what a dead executor has left running.
func endContainer(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, containerMark))
	runtime, name, ok := strings.Cut(string(text), "\n")
	if err != nil || !ok || !filepath.IsAbs(runtime) || !strings.HasPrefix(name, "apollo11-") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), imageLimit)
	defer cancel()
	exec.CommandContext(ctx, runtime, removal(runtime, name)...).Run() // what it can't remove is not ours to fail for
}
