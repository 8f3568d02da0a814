// Validates one document per line over one stream.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"

	"peripety"
	scenariov1 "peripety/api/scenario/v1"
)

func main() {
	client, connectErr := peripety.Connect(os.Getenv("PERIPETY_ADDRESS"))
	file, err := os.Open("batch.jsonl")
	if err != nil || connectErr != nil {
		log.Fatal(err, connectErr)
	}
	documents := func(yield func(*scenariov1.SpecItem, error) bool) { // reads only as fast as the server validates
		lines := bufio.NewScanner(file)
		for number, more := 1, true; more && lines.Scan(); number++ {
			more = yield(&scenariov1.SpecItem{ItemId: fmt.Sprint("line ", number), Spec: []byte(lines.Text())}, nil)
		}
	}
	for verdict, err := range client.Validate(context.Background(), documents, nil) {
		if err != nil {
			log.Fatal(err)
		} else if verdict.GetError() != nil {
			fmt.Println(verdict.GetItemId(), "not validated:", peripety.ItemError(verdict.GetError()))
		} else if verdict.GetAccepted() {
			fmt.Println(verdict.GetItemId(), "accepted")
		} else {
			finding := verdict.GetFindings().GetFindings()[0]
			fmt.Println(verdict.GetItemId(), "rejected:", finding.GetCode(), finding.GetPath(), finding.GetMessage())
		}
	}
}
