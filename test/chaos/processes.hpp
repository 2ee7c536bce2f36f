#ifndef COACCEL_TEST_CHAOS_PROCESSES_HPP
#define COACCEL_TEST_CHAOS_PROCESSES_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chaos {

/// Whether it is a running child of this process.
bool is_child(int pid);

/// All running children of this process.
std::vector<int> children();

/// Sends a signal to a child; does nothing if it is none any more.
void send(int pid, int signal);

std::ptrdiff_t open_descriptors();

/// The number of children that are left, and of descriptors that are open beyond `descriptors`; each is reported on the
/// standard error.
std::uint64_t left_resources(std::ptrdiff_t descriptors);

} // namespace chaos

#endif
