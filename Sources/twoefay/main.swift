print("twoefay")
