init python:
    import os, peripety
    game = peripety.Client(os.environ.get("PERIPETY_URL", "http://127.0.0.1:50080"))

label start:
    $ session = game.create(game.compile(renpy.open_file("scenario.json", encoding="utf-8").read()), 7)
    python:
        for name, data, session in game.play(session, "tend", "I listen."):
            if name == "narrative_chunk":
                narrator(data["text"])
    "Turn [session[turn]] has ended."
