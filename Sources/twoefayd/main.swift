print("twoefayd")
