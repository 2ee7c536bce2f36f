// Calls no coaccel function: including one coaccel header is enough to enforce its Asio configuration.
#include <coaccel/core/result.hpp>

int main() {}
