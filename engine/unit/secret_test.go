package unit

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"apollo11/engine/task"
)

const canary = "canary-7f3a\"b\\q"

// A secret reaches the unit, and by none of the ways out anybody else.
func TestSecrets(t *testing.T) {
	const leave = `env | grep -q '^DB_PASSWORD=' || exit 9
test "$DB_PASSWORD" = 'canary-7f3a"b\q' || exit 8
`
	tests := []struct {
		name, execute string
		class         task.Class
		says          string // in the error
		logged        string
	}{
		{"printed", leave + `echo "out $DB_PASSWORD"; echo "err $DB_PASSWORD" >&2`, task.NoClass, "", "out ***\n|err ***\n"},
		{"printed in pieces", leave + `printf %s "${DB_PASSWORD%????}"; printf '%s\n' '"b\q'`, task.NoClass, "", ""},
		{"the reason", leave + `echo "cannot log in with $DB_PASSWORD" >&2; exit 1`, task.ExecuteFailed, "cannot log in with ***", ""},
		{"progress", leave + `echo "50 using $DB_PASSWORD" >>"$APOLLO_PROGRESS"; echo "$DB_PASSWORD" >>"$APOLLO_PROGRESS"`, task.NoClass, "", ""},
		{"output", leave + `echo "url=db://me:$DB_PASSWORD@host" >>"$APOLLO_OUTPUT"`, task.OutputInvalid, "$APOLLO_OUTPUT holds the value of the secret DB_PASSWORD", ""},
		{"bad output", leave + `echo "$DB_PASSWORD" >>"$APOLLO_OUTPUT"`, task.OutputInvalid, "the secret DB_PASSWORD", ""},
		{"state", leave + `echo "set.pw=$DB_PASSWORD" >>"$APOLLO_STATE"`, task.OutputInvalid, "$APOLLO_STATE holds the value of the secret DB_PASSWORD", ""},
		{"cleanup", leave, task.NoClass, "cleanup ended with exit code 3: ***", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			more := `secrets = { DB_PASSWORD = "env:THE_PASSWORD" }`
			if tt.name == "cleanup" {
				more += "\ncleanup = 'echo \"$DB_PASSWORD\" >&2; exit 3'"
			}
			r := newRig(t, shell(tt.execute, more))
			r.job.Environ = append(r.job.Environ, "THE_PASSWORD="+canary)
			o := r.run()
			if o.Class != tt.class || !strings.Contains(o.Error, tt.says) {
				t.Errorf("%v %s", o.Class, o.Error)
			}
			for _, line := range strings.Split(tt.logged, "|") {
				if !strings.Contains(r.logged.String(), line) {
					t.Errorf("log %q", r.logged.String())
				}
			}
			all := fmt.Sprint(o, r.progress, string(r.job.Manifest.Unit.AppendText(nil))) + r.logged.String()
			if strings.Contains(all, "7f3a") {
				t.Errorf("the canary is out: %s", all)
			}
			if tt.name == "progress" && (len(r.progress) != 2 || r.progress[0] != "50 using ***") {
				t.Errorf("%q", r.progress)
			}
		})
	}
}

func TestSecretFile(t *testing.T) {
	r := newRig(t, shell(`test "$KEY" = "$(printf 'one\ntwo')" && echo two; printf '%s\n' "$KEY"`, `secrets = { KEY = "file:key" }`))
	write(t, filepath.Join(r.job.Manifest.Dir, "key"), "one\ntwo\r\n")
	if o := r.run(); o.Status != task.Success || r.logged.String() != "two\n***\n" {
		t.Errorf("%v, log %q", o, r.logged.String())
	}
}

func TestSecretsThatAreNone(t *testing.T) {
	tests := []struct{ from, value, says string }{
		{"env:GONE", "", "secret S: the executor has no variable GONE"},
		{"file:gone", "", "secret S: open "},
		{"env:SHORT", "abc", "secret S: variable SHORT holds 3 bytes: too short to be masked, want at least 4"},
		{"file:/dev/null", "", "not a regular file"},
	}
	for _, tt := range tests {
		r := newRig(t, shell("echo ran", fmt.Sprintf("secrets = { S = %q }", tt.from)))
		r.job.Environ = append(r.job.Environ, "SHORT=abc")
		o := r.run()
		if o.Class != task.PrepareFailed || !strings.Contains(o.Error, tt.says) || bytes.Contains(r.logged.Bytes(), []byte("ran")) {
			t.Errorf("%s: %v %s", tt.from, o.Class, o.Error)
		}
	}
}
