package unit

import "strings"

// lines says on which line of a TOML text each key stands, for messages; the
// TOML library keeps that to itself. It need not be exact: a key that is not
// found is looked for by its table.
type lines map[string]int

func findLines(text string) lines {
	found, table, multi := lines{}, "", ""
	for i, line := range strings.Split(text, "\n") {
		if multi != "" {
			if strings.Contains(line, multi) {
				multi = ""
			}
			continue
		}
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = plainKey(strings.Trim(strings.SplitN(line, "#", 2)[0], "[] \t"))
			found.note(table, i+1)
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		found.note(join(table, plainKey(key)), i+1)
		for _, quote := range []string{`"""`, `'''`} {
			if strings.Count(value, quote)%2 == 1 {
				multi = quote
			}
		}
	}
	return found
}

func (l lines) note(key string, line int) {
	if _, there := l[key]; !there {
		l[key] = line
	}
}

// of is the line of a dotted key, or of the nearest table around it; 0: unknown.
func (l lines) of(key string) int {
	for key != "" {
		if n, ok := l[key]; ok {
			return n
		}
		key = key[:max(strings.LastIndexByte(key, '.'), 0)]
	}
	return 0
}

// plainKey drops blanks and quotes around the parts of a dotted key.
func plainKey(key string) string {
	parts := strings.Split(key, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(p, " \t\"'")
	}
	return strings.Join(parts, ".")
}

func join(table, key string) string {
	if table == "" {
		return key
	}
	return table + "." + key
}
