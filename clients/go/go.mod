module twoefay

go 1.19
