"""`ssil data`: the commands on data sets, one file per command."""

from cyclopts import App

COMMANDS = {
    "prepare": "Pack the images of a source into a store.",
    "check": "Read every image, and say what is wrong.",
    "show": "Show counts, classes and sizes, and a sheet of images.",
    "list": "Write which images are for training and for testing.",
    "export": "Write any data set as folders of PNG files.",
}

app = App(
    name="data",
    help_epilogue="""A SOURCE is a name (see `ssil datasets`), a folder with one folder per class,
or a table of paths and labels (.csv). A STORE is what `prepare` writes: the
images in a few large files, all validated, which open at once and read fast.

Examples:
  ssil data show my_photos --sheet contact.png
  ssil data check my_photos
  ssil data prepare imagenet --data-root /data --short-side 256 --out in256
  ssil run --dataset in256 --tasks 10 --out runs/first""",
)
for _place, (_name, _summary) in enumerate(COMMANDS.items()):
    app.command(f"ssil.cli.data_{_name}:app", name=_name, help=_summary, sort_key=_place)
