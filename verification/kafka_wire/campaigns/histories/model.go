package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Phases of a topic.
const (
	absent = iota
	present
	// The controller has started the deletion. It ends at any later time.
	deleting
)

const noLeader = -1

// A topic is the state of the model: what a client may learn from the controller about one topic name.
// Lists are joined by commas, so that states are comparable.
type topic struct {
	phase      int
	id         string // empty: not known yet
	partitions int
	// Of partition 0, as in ListPartitionReassignments.
	replicas, adding, removing string
	leader                     int
}

// An operation on a topic, as recorded by a client. Kafka's error code is empty if the client does not know the outcome.
type operation struct {
	Client     int    `json:"client"`
	Topic      string `json:"topic"`
	Kind       string `json:"kind"`
	Call       int64  `json:"call"`
	Return     int64  `json:"return"`
	Code       string `json:"code"`
	Partitions int    `json:"partitions"`
	Replicas   []int  `json:"replicas"`
	Adding     []int  `json:"adding"`
	Removing   []int  `json:"removing"`
	Leader     int    `json:"leader"`
	ID         string `json:"id"`
}

// next returns the states after an operation whose outcome is known. It returns none if the outcome is impossible.
func (t topic) next(op operation) []topic {
	switch op.Kind {
	case "create":
		return t.create(op)
	case "delete":
		return t.delete(op)
	case "describe":
		return t.describe(op)
	case "grow":
		return t.grow(op)
	case "reassign":
		return t.reassign(op)
	case "cancel":
		return t.cancel(op)
	case "list":
		return t.list(op)
	case "elect":
		return t.elect(op)
	}
	panic("kind: found " + op.Kind)
}

func (t topic) create(op operation) []topic {
	if t.phase != absent {
		return t.unchangedIf(op.Code == "TOPIC_ALREADY_EXISTS")
	}
	if op.Code != "NONE" {
		return nil
	}
	leader := op.Replicas[0]
	return []topic{{present, op.ID, op.Partitions, join(op.Replicas), "", "", leader}}
}

func (t topic) delete(op operation) []topic {
	switch {
	case t.phase == present && op.Code == "NONE":
		return []topic{{phase: deleting}}
	case t.phase == deleting:
		// Deletions of one topic at the same time all succeed.
		return t.unchangedIf(op.Code == "NONE" || op.Code == "UNKNOWN_TOPIC_OR_PARTITION")
	}
	return t.unchangedIf(t.phase == absent && op.Code == "UNKNOWN_TOPIC_OR_PARTITION")
}

func (t topic) describe(op operation) []topic {
	if t.phase != present {
		return t.unchangedIf(op.Code == "UNKNOWN_TOPIC_OR_PARTITION")
	}
	if t.id == "" {
		t.id = op.ID
	}
	same := op.ID == t.id && op.Partitions == t.partitions && join(op.Replicas) == t.replicas && op.Leader == t.leader
	return t.unchangedIf(op.Code == "NONE" && same)
}

func (t topic) grow(op operation) []topic {
	switch {
	case t.phase == absent:
		return t.unchangedIf(op.Code == "UNKNOWN_TOPIC_OR_PARTITION")
	case t.phase == deleting:
		return t.unchangedIf(op.Code == "INVALID_TOPIC_EXCEPTION")
	case t.reassigning():
		return t.unchangedIf(op.Code == "REASSIGNMENT_IN_PROGRESS")
	case op.Partitions <= t.partitions:
		return t.unchangedIf(op.Code == "INVALID_PARTITIONS")
	case op.Code != "NONE":
		return nil
	}
	t.partitions = op.Partitions
	return []topic{t}
}

// reassign follows Kafka's ReplicaAssignment.reassignTo.
func (t topic) reassign(op operation) []topic {
	if t.phase != present {
		return t.unchangedIf(op.Code == "UNKNOWN_TOPIC_OR_PARTITION")
	}
	if op.Code != "NONE" {
		return nil
	}
	return t.towards(op.Replicas)
}

func (t topic) cancel(op operation) []topic {
	switch {
	case t.phase == deleting:
		return t.unchangedIf(op.Code == "NO_REASSIGNMENT_IN_PROGRESS" || op.Code == "UNKNOWN_TOPIC_OR_PARTITION")
	case t.phase == absent || !t.reassigning():
		return t.unchangedIf(op.Code == "NO_REASSIGNMENT_IN_PROGRESS")
	case op.Code != "NONE":
		return nil
	}
	return t.towards(without(split(t.replicas), split(t.adding)))
}

func (t topic) list(op operation) []topic {
	if t.phase != present {
		// A deleting topic may still have its reassignment.
		return t.unchangedIf(t.phase == deleting || len(op.Replicas) == 0)
	}
	if !t.reassigning() {
		return t.unchangedIf(len(op.Replicas) == 0)
	}
	same := join(op.Replicas) == t.replicas && join(op.Adding) == t.adding && join(op.Removing) == t.removing
	return t.unchangedIf(same)
}

// elect is the election of the preferred leader. No broker fails, so no leader changes without a request.
func (t topic) elect(op operation) []topic {
	switch t.phase {
	case absent:
		return t.unchangedIf(op.Code == "UNKNOWN_TOPIC_OR_PARTITION")
	case deleting:
		return t.unchangedIf(op.Code == "INVALID_TOPIC_EXCEPTION")
	}
	preferred := split(t.replicas)[0]
	if t.leader == preferred {
		return t.unchangedIf(op.Code == "ELECTION_NOT_NEEDED")
	}
	if op.Code == "NONE" {
		t.leader = preferred
		return []topic{t}
	}
	return t.unchangedIf(op.Code == "PREFERRED_LEADER_NOT_AVAILABLE")
}

func (t topic) unchangedIf(possible bool) []topic {
	if possible {
		return []topic{t}
	}
	return nil
}

func (t topic) reassigning() bool {
	return t.adding != "" || t.removing != ""
}

// towards returns the states with a reassignment of partition 0 to a target.
//
// An override or cancellation may drop the leader. As in Kafka, the partition then has none until an election.
func (t topic) towards(target []int) []topic {
	overrides := t.reassigning()
	origin := without(split(t.replicas), split(t.adding))
	all := slices.Clone(target)
	all = append(all, without(origin, target)...)
	t.replicas, t.adding, t.removing = join(all), join(without(all, origin)), join(without(all, target))
	var states []topic
	if overrides && !slices.Contains(all, t.leader) {
		leaderless := t
		leaderless.leader = noLeader
		states = append(states, leaderless)
	}
	if !t.reassigning() {
		t = t.completed()
	}
	return append(states, t)
}

// completed returns the state after the reassignment. A leader that is not in the target is replaced.
func (t topic) completed() topic {
	target := without(split(t.replicas), split(t.removing))
	t.replicas, t.adding, t.removing = join(target), "", ""
	if t.leader != noLeader && !slices.Contains(target, t.leader) {
		t.leader = target[0]
	}
	return t
}

// spontaneous returns the state and those that it reaches without a request.
func (t topic) spontaneous() []topic {
	states := []topic{t}
	switch {
	case t.phase == deleting:
		return append(states, topic{phase: absent})
	case t.phase == present && t.reassigning():
		states = append(states, t.completed())
	}
	if t.phase == present && t.leader == noLeader {
		// A new controller elects a leader.
		for _, state := range slices.Clone(states) {
			for _, replica := range split(state.replicas) {
				state.leader = replica
				states = append(states, state)
			}
		}
	}
	return states
}

// outcomes returns the states after an operation. One without a code may have had any effect, or none.
func (t topic) outcomes(op operation) []topic {
	var states []topic
	for _, state := range t.spontaneous() {
		if op.Code != "" {
			states = append(states, state.next(op)...)
			continue
		}
		states = append(states, state)
		op.Code = "NONE"
		states = append(states, state.next(op)...)
		op.Code = ""
	}
	return states
}

// Kafka's answers of a controller about topics. Histories are checked by topic.
var model = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{topic{}} },
	Step: func(state, input, output interface{}) []interface{} {
		var next []interface{}
		for _, after := range state.(topic).outcomes(output.(operation)) {
			next = append(next, after)
		}
		return next
	},
	DescribeOperation: func(input, output interface{}) string { return output.(operation).String() },
}

func join(brokers []int) string {
	texts := make([]string, len(brokers))
	for index, broker := range brokers {
		texts[index] = strconv.Itoa(broker)
	}
	return strings.Join(texts, ",")
}

func split(text string) []int {
	var brokers []int
	for _, part := range strings.FieldsFunc(text, func(char rune) bool { return char == ',' }) {
		broker, _ := strconv.Atoi(part)
		brokers = append(brokers, broker)
	}
	return brokers
}

func without(brokers, removed []int) []int {
	var kept []int
	for _, broker := range brokers {
		if !slices.Contains(removed, broker) {
			kept = append(kept, broker)
		}
	}
	return kept
}
