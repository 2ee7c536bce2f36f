#ifndef COACCEL_PLUGIN_INTERFACE_HPP
#define COACCEL_PLUGIN_INTERFACE_HPP

// What a plug-in and coaccel know of each other. C++17, and nothing else of coaccel's or Boost's, so that nvcc takes
// it.

#include <cstddef>
#include <cstdint>

namespace coaccel::plugin {

inline constexpr std::uint32_t interface_version = 1;

/// The most arguments a function can take, how many of them can be buffers, and the most bytes of one that is none.
inline constexpr std::size_t max_parameters = 16;
inline constexpr std::size_t max_buffers = 8;
inline constexpr std::size_t max_value_bytes = 64;

/// Where a function's work goes. On a GPU the handle is a cudaStream_t, with its context current: the function puts its
/// work there and returns without waiting for it: it holds up the device meanwhile, and a worker that is held up for
/// longer than worker_options::heartbeat is taken to hang. On the CPU there is none, and the function does the work
/// itself.
struct stream {
    const char* backend = "host";
    void* handle = nullptr;

    bool on_gpu() const noexcept { return handle != nullptr; }
};

/// How a function takes an argument: a value, or a buffer that it only reads, or writes too.
enum class form : std::uint8_t { value, read, write };

/// Numbers of the arithmetic types; everything else is compared by its size.
enum class type : std::uint8_t {
    f32 = 3,
    f64 = 4,
    i8 = 5,
    u8 = 9,
    boolean = 32,
    other = 33,
};

struct parameter {
    plugin::form form;
    plugin::type type;
    /// Of the value, or of one element.
    std::uint16_t size;
};

/// What is given for a parameter: the elements of a buffer and their number, or the bytes of a value.
struct argument {
    void* data;
    std::uint64_t count;
};

struct function {
    const char* name;
    void (*target)();
    /// Zero, or else an explanation was written to `why`, which has this much room.
    int (*call)(void (*target)(), const stream& where, const argument* arguments, char* why, std::size_t room) noexcept;
    const parameter* parameters;
    std::uint32_t parameter_count;
    const function* next;
};

/// What a plug-in tells of itself, by a function `const table* coaccel_plugin_v1()`.
struct table {
    std::uint32_t version;
    const function* first;
};

} // namespace coaccel::plugin

#endif
