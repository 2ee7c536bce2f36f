#ifndef COACCEL_TEST_UNIT_PLUGIN_FUNCTIONS_HPP
#define COACCEL_TEST_UNIT_PLUGIN_FUNCTIONS_HPP

// Shared by the plug-in of the tests and its callers.

struct point {
    double x;
    double y;
};

// As large as a double.
struct pair_of_floats {
    float first;
    float second;
};

enum class side : int { left = 3, right = 4 };

#endif
