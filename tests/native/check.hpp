#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>

// Ends the program with the location and the values unless both are equal.
#define CHECK_EQUAL(actual, expected)                                                       \
    do {                                                                                    \
        const auto& actual_value = (actual);                                                \
        const auto& expected_value = (expected);                                            \
        if (!(actual_value == expected_value)) {                                            \
            std::cerr << __FILE__ << ":" << __LINE__ << ": " #actual " is " << actual_value \
                      << ", expected " << expected_value << std::endl;                      \
            std::exit(1);                                                                   \
        }                                                                                   \
    } while (false)

// How many times as much as usual a program draws: the first argument of `main`, else 1.
inline int effort(int argc, char** argv) { return argc > 1 ? std::atoi(argv[1]) : 1; }
