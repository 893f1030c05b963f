package tui

import (
	"context"
	"fmt"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// stateScreen is the global state, key by key.
type stateScreen struct {
	list   list[view.Key]
	all    []view.Key // without the filter
	more   bool       // there are keys that were not read
	filter filter
	asked  int64 // seq of the overview before the last answer, +1
	pinned string
	task   *view.Detail
}

// maxKeys bounds what the screen reads of the state.
const maxKeys = 20 * view.MaxRows

func newStateScreen() *stateScreen {
	return &stateScreen{list: newList(func(k *view.Key) string { return k.Key })}
}

type keysAnswer struct {
	keys []view.Key
	more bool
	seq  int64
}

func (x *stateScreen) ask(s *shared) request {
	if x.pinned != "" && (x.task == nil || x.task.ID != x.pinned) {
		return askTask(x.pinned)
	}
	seq := s.over.Status.Seq + 1
	if seq == x.asked {
		return nil
	}
	return func(ctx context.Context, source Source) (any, error) {
		a := keysAnswer{seq: seq}
		q := view.KeyQuery{}
		for {
			page, err := source.Keys(ctx, q)
			if err != nil {
				return nil, err
			}
			a.keys = append(a.keys, page.Keys...)
			q.Cursor = page.Cursor
			if a.more = q.Cursor != ""; !a.more || len(a.keys) >= maxKeys {
				cleanRows(a.keys)
				return a, nil
			}
		}
	}
}

func (x *stateScreen) take(_ *shared, body any) {
	switch a := body.(type) {
	case keysAnswer:
		x.all, x.more, x.asked = a.keys, a.more, a.seq
		x.refilter()
	case *view.Detail:
		x.task = a
		x.pinned = a.ID
	}
}

func (x *stateScreen) refilter() {
	rows := make([]view.Key, 0, len(x.all))
	for i := range x.all {
		if k := &x.all[i]; x.filter.match(k.Key + " " + k.Value + " " + k.Task + " " + k.Fault) {
			rows = append(rows, *k)
		}
	}
	x.list.set(rows)
}

func (x *stateScreen) do(s *shared, in input) (tea.Cmd, bool) {
	if x.list.move(in.act) {
		x.pinned, x.task = "", nil
		return nil, true
	}
	at := x.list.at()
	switch in.act {
	case find:
		s.wordsOnly(&x.filter, in.text)
		x.refilter()
	case back:
		x.filter, x.pinned, x.task = filter{}, "", nil
		x.refilter()
	case related:
		if at == nil || at.Task == "" {
			s.say("no task changed this key last")
			break
		}
		x.pinned, x.task = at.Task, nil
	case explain:
		id := ""
		if at != nil {
			id = at.Task
		}
		return s.explain(id), true
	case copyID:
		if at != nil {
			return s.copy(at.Key), true
		}
	default:
		return nil, false
	}
	return nil, true
}

var stateColumns = []column{
	{title: "KEY", wide: 24}, {title: "VALUE", wide: 16, share: true}, {title: "CHANGES", wide: 7, right: true, keep: 3},
	{title: "RECORD", wide: 9, right: true, keep: 1}, {title: "BY", wide: 12, keep: 2},
}

func keyCells(k *view.Key) []cell {
	tone, value := plain, k.Value
	if k.Fault != "" {
		tone, value = bad, k.Value+"  ! "+k.Fault
	}
	return []cell{
		{text: k.Key}, {value, tone}, {text: strconv.FormatInt(k.Version, 10)}, {strconv.FormatInt(k.Seq, 10), dim}, {k.Task, dim},
	}
}

func (x *stateScreen) view(s *shared, w, h int) []string {
	text := fmt.Sprintf("state, version %d: %s", s.over.Status.StateVersion, plural(len(x.list.rows), "key"))
	if x.more {
		text += fmt.Sprintf(" · only the first %d are read, apollo11 state KEY has any", len(x.all))
	}
	if x.filter.text != "" {
		text += fmt.Sprintf(" of %d · filter %s", len(x.all), clean(x.filter.text))
	}
	lines := []string{fit(" "+s.theme.paint(strong, text), w)}
	if len(x.all) == 0 && x.asked > 0 {
		x.list.height = max(1, h-2)
		return block(append(lines, " none yet: results of tasks set keys"), w, h)
	}
	return append(lines, x.list.view(s.theme, stateColumns, w, h-1, keyCells)...)
}

func (x *stateScreen) detail(s *shared, w int) []string {
	at := x.list.at()
	switch {
	case at == nil:
		return []string{"no key here"}
	case x.pinned != "" && x.task == nil:
		return []string{"reading " + x.pinned + "…"}
	case x.pinned != "":
		return append(keyDetail(s, at, w), append([]string{"", "changed last by"}, taskDetail(s, x.task, w)...)...)
	}
	return keyDetail(s, at, w)
}
