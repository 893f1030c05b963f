package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// setting binds a name to a field of a Config. A value always comes in as text;
// toml says whether a TOML value is of the right type, and is that text.
type setting struct {
	name string
	want string // what a value is, for messages
	toml func(any) (string, bool)
	set  func(string) error
	text func() string // canonical
}

// settings is the one list of what can be set, besides [limits] and [state].
func (c *Config) settings() []setting {
	const day = 24 * time.Hour
	return []setting{
		text("listen", &c.Listen, hostPort),
		text("data", &c.Data, notEmpty),
		boolean("debug", &c.Debug),
		span("heartbeat.interval", &c.Heartbeat.Interval, 10*time.Millisecond, time.Hour),
		span("heartbeat.timeout", &c.Heartbeat.Timeout, 10*time.Millisecond, day),
		count("heartbeat.misses", &c.Heartbeat.Misses, 1, 100),
		span("heartbeat.reconnect_grace", &c.Heartbeat.ReconnectGrace, 0, time.Hour),
		count("scheduler.queue_threshold", &c.Scheduler.QueueThreshold, 0, 1_000_000),
		count("scheduler.crash_limit", &c.Scheduler.CrashLimit, 1, 1000),
		span("wire.hold", &c.Wire.Hold, time.Millisecond, 4*time.Second),
		size("wire.max_frame", &c.Wire.MaxFrame, 256<<10, 64<<20),
		count("wire.max_connections", &c.Wire.MaxConnections, 1, 1_000_000),
		text("auth.executor_token_file", &c.Auth.ExecutorTokenFile, nil),
		text("auth.operator_token_file", &c.Auth.OperatorTokenFile, nil),
		text("auth.tls_cert", &c.Auth.TLSCert, nil),
		text("auth.tls_key", &c.Auth.TLSKey, nil),
		text("auth.client_ca", &c.Auth.ClientCA, nil),
		boolean("auth.insecure", &c.Auth.Insecure),
		count("local.executors", &c.Local.Executors, 0, 1000),
		text("local.units", &c.Local.Units, notEmpty),
		text("local.missions", &c.Local.Missions, notEmpty),
		text("local.share", &c.Local.Share, notEmpty),
		boolean("engine.undeclared_state", &c.Engine.UndeclaredState),
		count("unit.retries", &c.Unit.Retries, 0, 1000),
		span("unit.retry_interval", &c.Unit.RetryInterval, 0, day),
		factor("unit.backoff", &c.Unit.Backoff, 1, 100),
		factor("unit.jitter", &c.Unit.Jitter, 0, 1),
		span("unit.timeout", &c.Unit.Timeout, time.Millisecond, 30*day),
		span("unit.grace", &c.Unit.Grace, 0, time.Hour),
		list("unit.env", &c.Unit.Env, variableName),
		words("unit.container_args", &c.Unit.ContainerArgs),
		count("retention.tasks", &c.Retention.Tasks, 0, 100_000_000),
		span("retention.tasks_age", &c.Retention.TasksAge, 0, longest),
		span("retention.keys", &c.Retention.Keys, time.Second, longest),
		span("retention.journal", &c.Retention.Journal, 0, longest),
		span("retention.runs", &c.Retention.Runs, 0, longest),
		span("retention.logs", &c.Retention.Logs, 0, longest),
		size("retention.logs_size", &c.Retention.LogsSize, 0, 1<<50),
		count("retention.backups", &c.Retention.Backups, 0, 10_000),
		text("retention.backup_at", &c.Retention.BackupAt, clockTime),
		text("log.file", &c.Log.File, nil),
		size("log.max_size", &c.Log.MaxSize, 64<<10, 1<<40),
		count("log.keep", &c.Log.Keep, 1, 10_000),
		text("console.theme", &c.Console.Theme, oneOf("auto", "dark", "light", "mono", "colour-blind")),
		text("console.ssh_listen", &c.Console.SSHListen, emptyOr(hostPort)),
		text("console.authorized_keys", &c.Console.AuthorizedKeys, nil),
	}
}

const longest = 100 * 365 * 24 * time.Hour

// text is a text setting; check may be nil.
func text(name string, p *string, check func(string) error) setting {
	return setting{
		name: name, want: "a text in quotes", toml: asString,
		set: func(s string) error {
			if strings.ContainsAny(s, "\x00\n\r") {
				return errors.New("want one line")
			}
			if check != nil {
				if err := check(s); err != nil {
					return err
				}
			}
			*p = s
			return nil
		},
		text: func() string { return *p },
	}
}

func boolean(name string, p *bool) setting {
	return setting{
		name: name, want: "true or false",
		toml: func(v any) (string, bool) { b, ok := v.(bool); return strconv.FormatBool(b), ok },
		set: func(s string) error {
			if s != "true" && s != "false" {
				return errors.New("want true or false")
			}
			*p = s == "true"
			return nil
		},
		text: func() string { return strconv.FormatBool(*p) },
	}
}

func count(name string, p *int, least, most int) setting {
	return setting{
		name: name, want: "a whole number without quotes",
		toml: func(v any) (string, bool) { n, ok := v.(int64); return strconv.FormatInt(n, 10), ok },
		set: func(s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				return errors.New("want a whole number")
			}
			if err != nil || n < int64(least) || n > int64(most) {
				return fmt.Errorf("out of range: want %d to %d", least, most)
			}
			*p = int(n)
			return nil
		},
		text: func() string { return strconv.Itoa(*p) },
	}
}

func factor(name string, p *float64, least, most float64) setting {
	return setting{
		name: name, want: "a number without quotes", toml: asNumber,
		set: func(s string) error {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				return errors.New("want a number")
			}
			if !(f >= least && f <= most) { // NaN too
				return fmt.Errorf("out of range: want %g to %g", least, most)
			}
			*p = f
			return nil
		},
		text: func() string { return formatFloat(*p) },
	}
}

func span(name string, p *time.Duration, least, most time.Duration) setting {
	return setting{
		name: name, want: `a duration in quotes, such as "10s"`, toml: asString,
		set: func(s string) error {
			d, err := time.ParseDuration(s)
			if err != nil {
				return errors.New("want a duration such as 500ms, 10s, 5m or 168h")
			}
			if d < least || d > most {
				return fmt.Errorf("out of range: want %s to %s", least, most)
			}
			*p = d
			return nil
		},
		text: func() string { return p.String() },
	}
}

func size(name string, p *Size, least, most Size) setting {
	return setting{
		name: name, want: `a size in quotes, such as "1MiB"`, toml: asString,
		set: func(s string) error {
			n, err := ParseSize(s)
			if err != nil {
				return err
			}
			if n < least || n > most {
				return fmt.Errorf("out of range: want %s to %s", least, most)
			}
			*p = n
			return nil
		},
		text: func() string { return p.String() },
	}
}

// list is a TOML list of texts, or one text with commas.
func list(name string, p *[]string, check func(string) error) setting {
	return setting{
		name: name, want: `a list of texts, such as ["PATH", "HOME"]`, toml: asList,
		set: func(s string) error {
			var all []string
			for item := range strings.SplitSeq(s, ",") {
				item = strings.TrimSpace(item)
				if s == "" || slices.Contains(all, item) {
					continue
				}
				if err := check(item); err != nil {
					return err
				}
				all = append(all, item)
			}
			*p = all
			return nil
		},
		text: func() string { return strings.Join(slices.Sorted(slices.Values(*p)), ",") },
	}
}

// words is a list whose order and repetitions count, such as a command's
// arguments.
func words(name string, p *[]string) setting {
	s := list(name, p, nil)
	s.want = `a list of texts, such as ["--runtime", "runc"]`
	s.set = func(text string) error {
		*p = nil
		if text != "" {
			*p = strings.Split(text, ",")
		}
		return nil
	}
	s.text = func() string { return strings.Join(*p, ",") }
	return s
}

func asString(v any) (string, bool) { s, ok := v.(string); return s, ok }

func asNumber(v any) (string, bool) {
	switch n := v.(type) {
	case int64:
		return strconv.FormatInt(n, 10), true
	case float64:
		return formatFloat(n), true
	}
	return "", false
}

func asList(v any) (string, bool) {
	items, ok := v.([]any)
	texts := make([]string, len(items))
	for i := range items {
		if texts[i], ok = items[i].(string); !ok {
			return "", false
		}
	}
	return strings.Join(texts, ","), ok
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func notEmpty(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func hostPort(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("want host:port, such as 127.0.0.1:7011 or [::1]:7011")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q: want 0 to 65535", task.Printable(port))
	} else if strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("port %q: want plain digits", task.Printable(port))
	}
	return nil
}

func emptyOr(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

func clockTime(s string) error {
	if _, err := time.Parse("15:04", s); err != nil || len(s) != len("15:04") {
		return errors.New("want a time of day such as 03:00")
	}
	return nil
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return fmt.Errorf("want one of %s%s", strings.Join(words, ", "), meant(task.Nearest(s, words)))
	}
}

func variableName(s string) error {
	ok := s != "" && (s[0] < '0' || s[0] > '9')
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
	}
	if !ok {
		return fmt.Errorf("%q is not the name of a variable", task.Printable(s))
	}
	return nil
}
