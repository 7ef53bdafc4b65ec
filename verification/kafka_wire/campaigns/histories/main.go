// Command histories checks whether histories of a controller's answers are linearizable, with Porcupine.
//
//	histories HISTORY.json [FOLDER]
//
// The file has a list of operations. One without an end has "return": 0. The command prints a JSON document. FOLDER
// receives a page that shows the operations of each topic whose history is not linearizable.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 60 * time.Second

type report struct {
	Operations int      `json:"operations"`
	Topics     int      `json:"topics"`
	Longest    int      `json:"longest"`
	Violations []string `json:"violations"`
	// Topics whose check took too long.
	Undecided []string `json:"undecided"`
}

func (op operation) String() string {
	code := op.Code
	if code == "" {
		code = "unknown"
	}
	return fmt.Sprintf("%s(partitions=%d replicas=%v adding=%v removing=%v leader=%d id=%.8s): %s",
		op.Kind, op.Partitions, op.Replicas, op.Adding, op.Removing, op.Leader, op.ID, code)
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 || len(os.Args) > 3 {
		log.Fatal("usage: histories HISTORY.json [FOLDER]")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var operations []operation
	if err := json.Unmarshal(text, &operations); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	folder := ""
	if len(os.Args) == 3 {
		folder = os.Args[2]
	}
	if err := json.NewEncoder(os.Stdout).Encode(check(operations, folder)); err != nil {
		log.Fatal(err)
	}
}

// check checks each topic by itself, because a history is linearizable if those of all objects are.
func check(operations []operation, folder string) report {
	topics := map[string][]porcupine.Operation{}
	for _, op := range operations {
		end := op.Return
		if end == 0 {
			end = math.MaxInt64
		}
		topics[op.Topic] = append(topics[op.Topic],
			porcupine.Operation{ClientId: op.Client, Output: op, Call: op.Call, Return: end})
	}
	result := report{Operations: len(operations), Topics: len(topics), Violations: []string{}, Undecided: []string{}}
	for name, history := range topics {
		result.Longest = max(result.Longest, len(history))
		deterministic := model.ToModel()
		outcome, info := porcupine.CheckOperationsVerbose(deterministic, history, patience)
		switch outcome {
		case porcupine.Illegal:
			result.Violations = append(result.Violations, name)
			if folder != "" {
				path := filepath.Join(folder, name+".html")
				if err := porcupine.VisualizePath(deterministic, info, path); err != nil {
					log.Fatal(err)
				}
			}
		case porcupine.Unknown:
			result.Undecided = append(result.Undecided, name)
		}
	}
	sort.Strings(result.Violations)
	sort.Strings(result.Undecided)
	return result
}
