"""What goes wrong through no fault of the program."""


class UserError(Exception):
    """Bad input. The message names the field, the value and the cure, in one line."""


class RefusedError(Exception):
    """An update that a guard has refused: all is as it was."""
