extends Node
## Plays the turn of a test in an existing session, and prints its events.

var game = preload("res://addons/peripety/protocol.gd").new()

func _ready():
	game.event.connect(_on_event)
	game.finished.connect(_on_finished)
	game.failed.connect(_on_failed)
	game.open(OS.get_environment("PERIPETY_SESSION"))

func _process(_delta):
	game.poll()

func _on_event(name, data):
	print(game._last, " ", name, " ", JSON.stringify(data.get("text", "")))

func _on_finished(call_name, _answer):
	if call_name == "open":
		game.play(OS.get_environment("PERIPETY_ACTION"), "I listen.")
		return
	print("turn ", int(game.session["turn"]), " ", game.session["status"]["kind"], " ", game.session["chain_hash"])
	get_tree().quit()

func _on_failed(_call, error):
	print("error ", error["code"], " ", error["status"])
	for violation in error["violations"]:
		print("violation ", violation["field"])
	get_tree().quit()
