extends Node

var game = preload("res://addons/peripety/protocol.gd").new()

func _ready():
	game.event.connect(_on_event)
	game.finished.connect(_on_finished)
	game.compile(FileAccess.get_file_as_string("res://scenario.json"))

func _process(_delta):
	game.poll()

func _on_event(name, data):
	print(name, " ", data.get("text", ""))

func _on_finished(call_name, answer):
	match call_name:
		"compile": game.create(answer["scenario_id"], 7)
		"create": game.play("tend", "I listen.")
		"play": get_tree().quit()
