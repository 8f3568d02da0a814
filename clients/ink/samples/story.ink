EXTERNAL turn(action, input)
VAR light = 0

You count {light} hours of light.
~ turn("tend", "I listen.")
Now it is {light}.
* [Rest] -> END
