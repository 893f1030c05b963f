package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// overlay is what lies over a screen.
type overlay uint8

const (
	noOverlay overlay = iota
	helpOverlay
	noticeOverlay
	detailOverlay
	explainOverlay
)

// Verdict is how a person left the console.
type Verdict uint8

// The verdicts.
const (
	Left Verdict = iota // the controller goes on
	Stop                // the controller is to stop
)

// model is the root: it routes keys and answers, and asks again and again.
type model struct {
	o       Options
	s       *shared
	screens [screens]screen
	at      screenID
	before  screenID // the screen before
	asked   [screens]asking
	polls   polling

	w, h int
	keys keystream
	front
	frame string // the last one; empty: something changed since
	ending
}

// front is what takes keys before the screen does; a dialog, which screens
// open, comes before that.
type front struct {
	overlay overlay
	scroll  int  // of the overlay, or of the detail beside the list
	focus   bool // moves scroll the detail beside the list
	prompt  *prompt
}

// ending is how the console ended.
type ending struct {
	verdict Verdict
	crash   error // why it did so unasked; nil: it did not
}

// asking is a screen's open question.
type asking struct {
	number  int
	waiting bool
	again   int // questions since the last poll that an answer led to
}

// mostAgain bounds the questions that answers lead to between two polls.
const mostAgain = 3

// polling is the root's own.
type polling struct {
	waiting bool      // for an overview
	active  time.Time // of the last key or change
}

func newModel(o Options) *model {
	theme := themeAt(o.Theme)
	if o.NoColor {
		theme = themeAt("mono")
	}
	s := &shared{
		source: o.Source, clock: o.Now, describe: o.Describe, log: o.Log, theme: &themes[theme], over: &view.Overview{}, strip: &missionScreen{},
	}
	m := &model{o: o, s: s, at: onMission, before: onMission}
	m.screens = [screens]screen{
		onMission: s.strip, onExecutors: newExecutorsScreen(), onQueue: newQueueScreen(), onDead: newDeadScreen(), onMissions: newRunsScreen(),
		onTimeline: newTimelineScreen(), onState: newStateScreen(), onLog: newLogScreen(),
	}
	m.polls.active = o.Now()
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.tick() }

// Update implements tea.Model. It routes; nothing in it waits.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.frame = ""
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.s.split = m.w >= splitFrom
		cmd = m.askScreen()
	case tea.KeyMsg:
		cmd = m.key(msg)
	case escMsg:
		cmd = m.strokes(m.keys.flush(msg.turn))
	case tickMsg:
		cmd = m.tick()
	case overviewMsg:
		cmd = m.takeOverview(msg)
	case answer:
		cmd = m.takeAnswer(msg)
	case changedMsg:
		cmd = m.takeChanged(msg)
	case formMsg:
		m.takeForm(msg)
	case explainedMsg:
		m.takeExplained(msg)
	case missionsMsg:
		m.takeMissions(msg)
	case ranMsg:
		cmd = m.takeRan(msg)
	case goMsg:
		cmd = m.goAs(msg.to, msg.in)
	case crashMsg:
		m.crash, cmd = msg.err, tea.Quit
	case copiedMsg:
		if msg.err != nil {
			m.s.complain(msg.err)
		}
	}
	return m, cmd
}

// View implements tea.Model; it is called once per message.
func (m *model) View() string {
	if m.frame == "" {
		m.frame = m.render()
	}
	return m.frame
}

// tick asks what is to be asked, and for the next tick.
func (m *model) tick() tea.Cmd {
	every := pollActive
	if m.s.clock().Sub(m.polls.active) > idleAfter {
		every = pollIdle
	}
	next := tea.Tick(every, func(time.Time) tea.Msg { return tickMsg{} })
	return tea.Batch(m.poll(), next)
}

// poll asks for the overview, and what the screen wants to know.
func (m *model) poll() tea.Cmd {
	var over tea.Cmd
	m.asked[m.at].again = 0
	if !m.polls.waiting {
		m.polls.waiting = true
		over = m.askOverview()
	}
	var strip tea.Cmd
	if m.stripHeight() > 0 {
		strip = m.askFor(onMission)
	}
	return tea.Batch(over, strip, m.askScreen())
}

func (m *model) askScreen() tea.Cmd { return m.askFor(m.at) }

// askFor asks what a screen wants to know, unless it waits for an answer.
func (m *model) askFor(id screenID) tea.Cmd {
	a := &m.asked[id]
	if a.waiting || m.h == 0 {
		return nil
	}
	r := m.screens[id].ask(m.s)
	if r == nil {
		return nil
	}
	a.number++
	a.waiting = true
	return m.ask(id, a.number, r)
}

// askAnew drops the answer that the screen waits for: it asks for something
// else now.
func (m *model) askAnew() tea.Cmd {
	m.asked[m.at].waiting = false
	return m.askScreen()
}

// takeOverview takes an overview in; where something has happened, the screen
// looks at once.
func (m *model) takeOverview(msg overviewMsg) tea.Cmd {
	m.polls.waiting = false
	if msg.err != nil {
		m.s.fault = clean(msg.err.Error())
		return nil
	}
	now := m.s.clock()
	if msg.over.Status.Seq != m.s.over.Status.Seq {
		m.polls.active = now
	}
	m.s.takeOverview(msg.over, now)
	return m.askScreen()
}

func (m *model) takeAnswer(msg answer) tea.Cmd {
	a := &m.asked[msg.to]
	if msg.number != a.number || !a.waiting {
		return nil // of a question that is not asked any more
	}
	a.waiting = false
	if msg.err != nil {
		if m.s.fault == "" {
			m.s.complain(msg.err)
		}
		return nil
	}
	m.screens[msg.to].take(m.s, msg.body)
	if msg.to != m.at || a.again == mostAgain {
		return nil
	}
	a.again++
	return m.askScreen()
}

// takeChanged says what became of an action, or asks on with what was counted.
func (m *model) takeChanged(msg changedMsg) tea.Cmd {
	form, _ := m.s.box.(*form)
	asked := form != nil && form.asked && msg.action.Verb == Edit
	switch {
	case msg.err != nil && asked:
		form.refused(msg.err)
		return nil
	case msg.err != nil:
		m.s.complain(msg.err)
	case msg.action.Tasks.Count:
		m.s.askMany(msg.action, msg.changed)
		return nil
	case asked:
		m.s.box = nil
		m.s.say("%s", form.done())
	default:
		m.s.report(msg.action, msg.changed)
	}
	return m.poll()
}

// takeForm opens the form on a task's inputs, unless something else came up.
func (m *model) takeForm(msg formMsg) {
	switch {
	case msg.err != nil:
		m.s.complain(msg.err)
	case m.s.box == nil && m.prompt == nil:
		m.s.ask(newForm(msg.detail))
	}
}

// key takes keys as the terminal library read them.
func (m *model) key(msg tea.KeyMsg) tea.Cmd {
	now := m.s.clock()
	m.polls.active = now
	strokes, wait := m.keys.take(msg, now)
	cmd := m.strokes(strokes)
	if wait {
		turn := m.keys.turns
		cmd = tea.Batch(cmd, tea.Tick(escWait, func(time.Time) tea.Msg { return escMsg{turn} }))
	}
	return cmd
}

func (m *model) strokes(list []stroke) tea.Cmd {
	cmds := make([]tea.Cmd, 0, len(list))
	for _, k := range list {
		cmds = append(cmds, m.stroke(k))
	}
	return tea.Batch(cmds...)
}
