#pragma once

#include <nanobind/nanobind.h>

// One function for each file of this folder; module.cpp calls them in the order of the layers.
