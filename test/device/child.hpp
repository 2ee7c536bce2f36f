#ifndef COACCEL_TEST_DEVICE_CHILD_HPP
#define COACCEL_TEST_DEVICE_CHILD_HPP

#include <string>
#include <vector>

// A sticky fault kills every context of its process, so what faults runs in a process of its own.
namespace test {

/// What a child does: returns its exit status; zero is good.
using child_function = int (*)(const std::vector<std::string>& arguments);

/// Makes `function` known under a name; at namespace scope.
struct child {
    child(const char* name, child_function function);
};

/// Runs this program again as the named child. Its exit status; -1 when it was killed or did not end in time. What
/// it printed comes along.
int run_child(const std::string& name, const std::vector<std::string>& arguments, std::string& output);

/// What main does when this process is a child; -1 when it is none.
int main_of_child(int argc, char** argv);

} // namespace test

#endif
