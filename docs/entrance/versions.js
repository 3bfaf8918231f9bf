// docs/publish.py puts another file here, which names the versions beside this one.
