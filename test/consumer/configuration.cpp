// Calls nothing of coaccel's: including one of its headers is enough to be held to its configuration of Asio.
#include <coaccel/core/result.hpp>

int main() {}
