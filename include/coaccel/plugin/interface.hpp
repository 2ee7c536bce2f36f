#ifndef COACCEL_PLUGIN_INTERFACE_HPP
#define COACCEL_PLUGIN_INTERFACE_HPP

// The interface between a plug-in and coaccel. C++17, and no other header of coaccel or Boost, so that nvcc accepts it.

#include <cstddef>
#include <cstdint>

namespace coaccel::plugin {

/// The version of this interface. A plug-in with a higher version is not loaded.
inline constexpr std::uint32_t interface_version = 2;
/// The oldest version with which a plug-in is loaded. Members with the mark "From version 2" are absent there.
inline constexpr std::uint32_t oldest_interface_version = 1;

/// The maximum number of parameters of a function.
inline constexpr std::size_t max_parameters = 64;
/// The maximum size in bytes of a parameter that is passed by value.
inline constexpr std::size_t max_value_bytes = 64;

/// The stream on which a function runs. On a GPU the handle is a cudaStream_t and its context is current: the function
/// enqueues its work there and returns without waiting. It blocks the device until it returns, and a worker that is
/// blocked for longer than worker_options::heartbeat is considered hung. On the CPU there is no stream, and the
/// function does the work itself.
struct stream {
    const char* backend = "host"; ///< "host" or "cuda".
    void* handle = nullptr;       ///< A CUstream when the backend is "cuda".

    bool on_gpu() const noexcept { return handle != nullptr; } ///< Whether there is a stream to launch on.
};

/// How a function takes an argument: as a value, as a buffer that it only reads, or as a buffer that it also writes.
enum class form : std::uint8_t { value, read, write };

/// Codes of the arithmetic types. Classes have the code `other` and are compared by size.
enum class type : std::uint8_t {
    f32 = 3,      ///< float
    f64 = 4,      ///< double
    i8 = 5,       ///< 8 bits, signed; 6, 7 and 8 are the codes for 16, 32 and 64 bits.
    u8 = 9,       ///< 8 bits, unsigned; 10, 11 and 12 are the codes for 16, 32 and 64 bits.
    boolean = 32, ///< bool
    other = 33,   ///< Any other type.
};

/// One parameter of a function.
struct parameter {
    plugin::form form; ///< A value or a buffer.
    plugin::type type; ///< The type of the value or element.
    /// The size of the value or element in bytes.
    std::uint16_t size;
};

/// An argument: the elements of a buffer and their number, or the bytes of a value.
struct argument {
    void* data;          ///< The value, or the first element.
    std::uint64_t count; ///< The bytes of a value, or the elements of a buffer.
};

/// A function of a plug-in, as the library calls it.
struct function {
    const char* name; ///< The name by which it is called.
    void (*target)(); ///< The function itself.
    /// Returns zero, or nonzero after writing an explanation of at most `room` bytes to `why`.
    int (*call)(void (*target)(), const stream& where, const argument* arguments, char* why, std::size_t room) noexcept;
    const parameter* parameters;   ///< In their order.
    std::uint32_t parameter_count; ///< The number of parameters.
    const function* next;          ///< The next in the list; null: the last.
    /// From version 2: the version of the function, at least 1. Functions of older plug-ins have version 1.
    std::uint32_t version = 1;
};

/// The functions of a plug-in, returned by `const table* coaccel_plugin_v1()` for every version of the interface.
struct table {
    std::uint32_t version; ///< The version of the interface for which the plug-in was compiled.
    const function* first; ///< The first in the list; null: none.
};

} // namespace coaccel::plugin

#endif
