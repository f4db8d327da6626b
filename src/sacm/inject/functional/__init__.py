"""Coverage beyond torch's dropout modules: functions, attention, recurrent layers, own classes."""
