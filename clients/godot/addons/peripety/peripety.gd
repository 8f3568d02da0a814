class_name Peripety
extends Node
## Node that plays a session of Peripety: calls to await, and a signal for each event of a turn.
##
## Tests do not run this file: the machine of the tests has no Godot 4. They run `protocol.gd`, in the form of Godot 3.

## An event of the turn. If `accepted` arrives again, discard the earlier events of the turn.
signal event(name: String, data: Dictionary)
## A call has ended. `error` is empty if it succeeded.
signal ended(answer: Dictionary, error: Dictionary)

const Protocol := preload("protocol.gd")

## Address of the HTTP interface.
@export var url: String = "http://127.0.0.1:50080"

## The error of the last call; empty if it succeeded. `error.code` is its reason.
var error: Dictionary = {}

## The session, as of its last turn.
var session: Dictionary:
	get:
		return _protocol.session

var _protocol := Protocol.new()
var _answer: Dictionary = {}


func _init() -> void:
	_protocol.event.connect(func(name, data): event.emit(name, data))
	_protocol.finished.connect(func(_call, answer): _end(answer, {}))
	_protocol.failed.connect(func(_call, problem): _end({}, problem))


func _process(_delta: float) -> void:
	_protocol.poll()


## Validates and stores a specification, and returns the id of the scenario; empty after an error.
func compile(spec: String) -> String:
	_protocol.url = url
	_protocol.compile(spec)
	await ended
	return "" if error else str(_answer.get("scenario_id", ""))


## Starts a session, and returns true if it succeeded.
func create(scenario_id: String, game_seed: int) -> bool:
	_protocol.url = url
	_protocol.create(scenario_id, game_seed)
	await ended
	return error.is_empty()


## Opens a session, and returns true if it succeeded.
func open(session_id: String) -> bool:
	_protocol.url = url
	_protocol.open(session_id)
	await ended
	return error.is_empty()


## Plays the next turn, and returns true if it was committed.
func play(action_id: String, input: String = "", params: Dictionary = {}) -> bool:
	_protocol.play(action_id, input, params)
	await ended
	return error.is_empty()


func _end(answer: Dictionary, problem: Dictionary) -> void:
	_answer = answer
	error = problem
	ended.emit(answer, problem)
