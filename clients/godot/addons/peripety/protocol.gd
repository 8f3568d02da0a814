extends RefCounted
## Protocol of the HTTP interface of Peripety, for one session: one call at a time, polled once a frame.
##
## A call is repeated until it has an answer, or an error that repeating does not help. Every request has an id, so a
## repetition has no second effect. `to_godot3.py` derives the form of this file for Godot 3.

## An event of the turn. If `accepted` arrives again, discard the earlier events of the turn.
signal event(name, data)
## The answer to `compile`, `create`, `open`, `play` or `post`. `session` is up to date.
signal finished(call, answer)
## The error: `code` is its reason, `status` that of HTTP or 0 for a lost connection, `detail` its text, `violations`
## the invalid fields, `retry_after` the seconds to wait.
signal failed(call, error)

const TRIES = 10
const FIRST_PAUSE = 100
const LONGEST_PAUSE = 2000
const LONGEST_HINT = 30000
## The server sends a heartbeat every 15 seconds, so a longer silence is a lost connection.
const LONGEST_SILENCE = 45000

## Address of the HTTP interface; by default that of the environment variable `PERIPETY_URL`.
var url: String = "http://127.0.0.1:50080"
## Bearer token; empty for none. Over plain http, use it on this machine only.
var token: String = ""
## The session, as of its last turn: `session_id`, `turn`, `status`, `legal_actions`, `state` and so on.
var session: Dictionary = {}

var _http = null
var _call: String = ""
var _method: int = HTTPClient.METHOD_GET
var _path: String = ""
var _body: String = ""
var _key: String = ""
var _is_sent: bool = false
var _status: int = 0
var _bytes: PackedByteArray = PackedByteArray()
var _fields: Dictionary = {}
var _heard: int = 0
var _next_try: int = 0
var _failures: int = 0
var _last_id: String = ""
var _last: int = 0
var _attempt: String = ""


func _init() -> void:
	if OS.has_environment("PERIPETY_URL"):
		url = OS.get_environment("PERIPETY_URL")


## Validates and stores a specification, a JSON text. The answer has `scenario_id`.
func compile(spec: String) -> void:
	var document = JSON.parse_string(spec)
	var id = str(document.get("id", "")) if document is Dictionary else "-"
	_begin("compile", HTTPClient.METHOD_POST, "/scenarios/" + id.uri_encode() + "/compile", spec)


## Starts a session. The seed determines every random event.
func create(scenario_id: String, game_seed: int) -> void:
	post("/sessions", {"scenario_id": scenario_id, "seed": game_seed}, "create")


## Opens a session, for example after a restart of the game.
func open(session_id: String) -> void:
	_begin("open", HTTPClient.METHOD_GET, "/sessions/" + session_id.uri_encode(), "")


## Plays the next turn of the session. An empty `action_id` is a turn of free text alone.
func play(action_id: String, input: String = "", params: Dictionary = {}) -> void:
	var actions = []
	if action_id != "":
		actions.append({"action_id": action_id, "params": params})
	var body = {
		"request_id": _new_id(),
		"expected_turn": int(session.get("turn", 0)) + 1,
		"actions": actions,
		"input": input,
	}
	post("/sessions/" + str(session.get("session_id", "")).uri_encode() + "/turns", body, "play")


## Sends a document to any route, such as `/rpc/SessionService/ForkSession`.
func post(path: String, body: Dictionary, call_name: String = "post") -> void:
	_begin(call_name, HTTPClient.METHOD_POST, path, JSON.stringify(body))


## True while a call has no answer.
func is_busy() -> bool:
	return _call != ""


## Ends the call without a signal. The server continues a turn that it has received.
func cancel() -> void:
	_call = ""
	_close()


## Continues the call. Call it once a frame: all signals are emitted from here.
func poll() -> void:
	if _call == "":
		return
	if _http == null:
		if Time.get_ticks_msec() >= _next_try:
			_connect()
		return
	_http.poll()
	var state = _http.get_status()
	if state == HTTPClient.STATUS_BODY:
		_read_body()
	elif state == HTTPClient.STATUS_CONNECTED and not _is_sent:
		_send()
	elif state == HTTPClient.STATUS_CONNECTED or state == HTTPClient.STATUS_DISCONNECTED:
		_end()
	elif state == HTTPClient.STATUS_CANT_RESOLVE or state == HTTPClient.STATUS_CANT_CONNECT:
		_repeat(_lost("the server cannot be reached"))
	elif state == HTTPClient.STATUS_CONNECTION_ERROR:
		_repeat(_lost("the connection broke"))
	if _http != null and Time.get_ticks_msec() - _heard > LONGEST_SILENCE:
		_repeat(_lost("no answer for 45 seconds"))


func _begin(call_name: String, method: int, path: String, body: String) -> void:
	if _call != "":
		push_error(call_name + ": another call is in progress; wait for its signal, or cancel it")
		return
	_call = call_name
	_method = method
	_path = path
	_body = body
	_key = _new_id()
	_failures = 0
	_last_id = ""
	_last = 0
	_attempt = ""
	_next_try = 0


func _connect() -> void:
	var is_tls = url.begins_with("https://")
	var address = url.replace("https://", "").replace("http://", "").split("/")[0].split(":")
	var port = 443 if is_tls else 80
	if address.size() > 1:
		port = int(address[1])
	_http = HTTPClient.new()
	_is_sent = false
	_status = 0
	_bytes = PackedByteArray()
	_fields = {}
	_heard = Time.get_ticks_msec()
	if _http.connect_to_host(address[0], port, TLSOptions.client() if is_tls else null) != OK:
		_repeat(_lost("the address is wrong: " + url))


func _send() -> void:
	var headers = PackedStringArray(["accept: " + ("text/event-stream" if _call == "play" else "application/json")])
	if token != "":
		headers.append("authorization: Bearer " + token)
	if _method == HTTPClient.METHOD_POST:
		headers.append("content-type: application/json")
		headers.append("idempotency-key: " + _key)
	if _last_id != "":
		headers.append("last-event-id: " + _last_id)
	_is_sent = true
	if _http.request(_method, _path, headers, _body) != OK:
		_repeat(_lost("the request could not be sent"))


func _read_body() -> void:
	_status = _http.get_response_code()
	var http = _http
	while http.get_status() == HTTPClient.STATUS_BODY:
		var chunk = http.read_response_body_chunk()
		if chunk.size() == 0:
			return
		_heard = Time.get_ticks_msec()
		if _call == "play" and _status == 200:
			for byte in chunk:
				if byte == 10:
					_read_line(_bytes.get_string_from_utf8().replace("\r", ""))
					_bytes = PackedByteArray()
				else:
					_bytes.append(byte)
				if _http != http: # the turn has ended, or a receiver has canceled it
					return
		else:
			_bytes.append_array(chunk)


## Reads a line of server-sent events. An event without its blank line at the end is incomplete, and has no effect.
func _read_line(line: String) -> void:
	if line == "":
		if _fields.has("data"):
			_receive(_fields.get("event", ""), _fields.get("id", ""), JSON.parse_string(_fields["data"]))
		_fields = {}
		return
	var mark = line.find(": ")
	if mark > 0:
		_fields[line.substr(0, mark)] = line.substr(mark + 2, line.length())


func _receive(name: String, id: String, data: Dictionary) -> void:
	_failures = 0
	if name == "error":
		_end_with(data)
		return
	var attempt = id.substr(id.find(".") + 1, id.length())
	var sequence = int(id.split(".")[0])
	if attempt == _attempt and sequence <= _last:
		return
	_attempt = attempt
	_last = sequence
	_last_id = id
	if name != "diff":
		emit_signal("event", name, data)
		return
	for key in ["turn", "status", "legal_actions", "state_hash", "chain_hash"]:
		session[key] = data.get(key)
	session.erase("state") # events have no state
	_call = ""
	_close()
	emit_signal("event", name, data)
	emit_signal("finished", "play", data)


## Ends a response whose body is complete, or whose connection was closed.
func _end() -> void:
	if _http.has_response():
		_status = _http.get_response_code()
	var answer = null
	if _bytes.size() > 0 and not (_call == "play" and _status == 200):
		answer = JSON.parse_string(_bytes.get_string_from_utf8())
	if not answer is Dictionary:
		_repeat(_lost("the answer is incomplete"))
	elif _status >= 400:
		_end_with(answer)
	else:
		var call_name = _call
		_call = ""
		_close()
		if call_name == "create" or call_name == "open":
			session = answer
		emit_signal("finished", call_name, answer)


func _end_with(problem: Dictionary) -> void:
	var status = int(problem.get("status", _status))
	var error = {
		"code": str(problem.get("code", "")),
		"status": status,
		"detail": str(problem.get("detail", "")),
		"violations": problem.get("violations", []),
		"retry_after": problem.get("retry_after", 0),
	}
	var hint = float(error["retry_after"]) * 1000
	if status == 502 or status == 503 or (status == 429 and hint > 0 and hint <= LONGEST_HINT):
		_repeat(error)
	else:
		_fail(error)


func _repeat(error: Dictionary) -> void:
	_close()
	_failures += 1
	if _failures >= TRIES:
		_fail(error)
		return
	var pause = min(LONGEST_PAUSE, FIRST_PAUSE * pow(2, _failures - 1))
	_next_try = Time.get_ticks_msec() + int(max(pause, min(float(error["retry_after"]) * 1000, LONGEST_HINT)))


func _fail(error: Dictionary) -> void:
	var call_name = _call
	_call = ""
	_close()
	emit_signal("failed", call_name, error)


func _close() -> void:
	if _http != null:
		_http.close()
	_http = null


func _lost(problem: String) -> Dictionary:
	return {"code": "", "status": 0, "detail": problem, "violations": [], "retry_after": 0}


## Returns a random UUID.
func _new_id() -> String:
	var digits = Crypto.new().generate_random_bytes(16).hex_encode()
	return digits.substr(0, 12) + "4" + digits.substr(13, 3) + "8" + digits.substr(17, 15)
