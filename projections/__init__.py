"""Read models: disposable tables built from the notification log."""
