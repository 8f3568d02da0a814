# Plays the turn of a test in an existing session, and prints its events. With the action `rollback`, it plays a turn,
# rolls back before it, and plays another action instead. With the action `frames`, it counts the frames of a turn.
init python:
    import json, os, peripety
    game = peripety.Client(os.environ["PERIPETY_URL"])

    class Count(NoRollback):
        value = 0

    class Frames(renpy.Displayable):
        drawn = 0

        def render(self, width, height, st, at):
            Frames.drawn += 1
            renpy.redraw(self, 0)
            return renpy.Render(width, height)

default count = Count()
screen frames():
    add Frames()
define config.name = "test"

label main_menu:
    return

label start:
    if os.environ["PERIPETY_ACTION"] == "rollback":
        jump rollback
    if os.environ["PERIPETY_ACTION"] == "frames":
        jump frames
    python:
        try:
            session = game.open(os.environ["PERIPETY_SESSION"])
            number = 0
            for name, data, session in game.play(session, os.environ["PERIPETY_ACTION"], "I listen."):
                number += 1
                print(number, name, json.dumps(data.get("text", "")), flush=True)
            print("turn", session["turn"], session["status"]["kind"], session["chain_hash"], flush=True)
        except peripety.PeripetyError as error:
            print("error", error.code, error.status, flush=True)
            for violation in error.violations:
                print("violation", violation["field"], flush=True)
        renpy.quit()

label rollback:
    $ session = game.open(os.environ["PERIPETY_SESSION"])
    $ renpy.checkpoint(True) # as after a line of dialogue
    $ renpy.checkpoint(True) # rolling back ends behind the checkpoint before
    python:
        count.value += 1
        for name, data, session in game.play(session, "tend" if count.value == 1 else "wait"):
            pass
        print("turn", session["turn"], session["status"]["kind"], session["chain_hash"], flush=True)
        if count.value == 1:
            renpy.rollback(force=True, checkpoints=1)
        renpy.quit()

label frames:
    show screen frames
    python:
        began = Frames.drawn
        for name, data, session in game.play(game.open(os.environ["PERIPETY_SESSION"]), "tend"):
            pass
        print("turn", session["turn"], Frames.drawn - began, flush=True)
        renpy.quit()
