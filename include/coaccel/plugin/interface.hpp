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
    const char* backend = "host"; ///< "host" or "cuda".
    void* handle = nullptr;       ///< With "cuda" a CUstream.

    bool on_gpu() const noexcept { return handle != nullptr; } ///< Whether there is a stream to launch on.
};

/// How a function takes an argument: a value, or a buffer that it only reads, or writes too.
enum class form : std::uint8_t { value, read, write };

/// Numbers of the arithmetic types; classes are compared by their size, and a class is no number.
enum class type : std::uint8_t {
    f32 = 3,
    f64 = 4,
    i8 = 5,
    u8 = 9,
    boolean = 32,
    other = 33,
};

/// One parameter of a function.
struct parameter {
    plugin::form form; ///< A value or a buffer.
    plugin::type type; ///< Of the value, or of an element.
    /// Of the value, or of one element.
    std::uint16_t size;
};

/// What is given for a parameter: the elements of a buffer and their number, or the bytes of a value.
struct argument {
    void* data;          ///< The value, or the first element.
    std::uint64_t count; ///< Bytes of a value, elements of a buffer.
};

/// A function of a plug-in, as the library calls it.
struct function {
    const char* name; ///< By which it is called.
    void (*target)(); ///< The function itself.
    /// Zero, or else an explanation was written to `why`, which has this much room.
    int (*call)(void (*target)(), const stream& where, const argument* arguments, char* why, std::size_t room) noexcept;
    const parameter* parameters;   ///< In their order.
    std::uint32_t parameter_count; ///< How many.
    const function* next;          ///< The next in the list; null: the last.
};

/// What a plug-in tells of itself, by a function `const table* coaccel_plugin_v1()`.
struct table {
    std::uint32_t version; ///< Of this interface.
    const function* first; ///< The first in the list; null: none.
};

} // namespace coaccel::plugin

#endif
