package server

import "time"

// ofAPI is whose counters are the API's. No topic has a name with a space.
const ofAPI = "the api"

type apiStatus struct {
	Address  string            `json:"address"`
	State    string            `json:"state"` // up or waiting
	Since    moment            `json:"since"`
	Error    string            `json:"error"` // why it waits
	Keys     string            `json:"keys"`
	UnderWay int               `json:"under_way"`
	Requests rate              `json:"requests"`
	Answers  []rate            `json:"answers"` // by code
	Refused  []rate            `json:"refused"` // by reason
	Scopes   []apiScopeStatus  `json:"scopes"`
	Callers  []apiCallerStatus `json:"callers"`
}

type apiScopeStatus struct {
	Name     string `json:"name"`
	Judged   rate   `json:"judged"`
	Verdicts []rate `json:"verdicts"`
	Begun    rate   `json:"begun"`
	Begins   []rate `json:"begins"`
	InHand   int    `json:"keys_in_hand"`
}

type apiCallerStatus struct {
	Name     string   `json:"name"`
	Proof    string   `json:"proof"`
	Scopes   []string `json:"scopes"`
	Requests rate     `json:"requests"`
}

// api follows what the API counts.
func (s *sampler) api(now *API, at time.Time, interval time.Duration) *apiStatus {
	if now == nil {
		return nil
	}
	shown := &apiStatus{Address: now.Address, State: "up", Error: s.clean(now.Waiting),
		Keys: now.Keys, UnderWay: now.UnderWay, Callers: []apiCallerStatus{}}
	if now.Waiting != "" {
		shown.State = "waiting"
	}
	shown.Since = moment{s.since(ofAPI, shown.State, at), at}
	shown.Answers, shown.Requests = s.rates(ofAPI, "requests", now.Answers, interval)
	shown.Refused, _ = s.rates(ofAPI, "refused", now.Refused, interval)
	for _, scope := range now.Scopes {
		of := apiScopeStatus{Name: scope.Name, InHand: scope.InHand}
		of.Verdicts, of.Judged = s.rates(ofAPI, "judged in "+scope.Name, scope.Verdicts, interval)
		of.Begins, of.Begun = s.rates(ofAPI, "begun in "+scope.Name, scope.Begins, interval)
		of.Judged.Name, of.Begun.Name = "judged", "begun"
		shown.Scopes = append(shown.Scopes, of)
	}
	for _, c := range now.Callers {
		_, requests := s.rates(ofAPI, "of "+c.Name, []Count{{"", c.Requests}}, interval)
		requests.Name = "requests"
		shown.Callers = append(shown.Callers, apiCallerStatus{Name: c.Name, Proof: c.Proof,
			Scopes: append([]string{}, c.Scopes...), Requests: requests})
	}
	return shown
}
