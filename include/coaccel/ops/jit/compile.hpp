#ifndef COACCEL_OPS_JIT_COMPILE_HPP
#define COACCEL_OPS_JIT_COMPILE_HPP

#include <coaccel/ops/jit/host_function.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace coaccel::jit {

/// A header in memory, used when its name is included.
struct header {
    std::string name; ///< The name in the include directive.
    std::string text; ///< The content.

    friend bool operator==(const header&, const header&) = default;
};

/// Whether compiled kernels are kept on disk.
enum class disk_caching : std::uint8_t { on, off };

/// The kernel to compile and the compiler options. Each setter returns the object, so that calls can be chained.
///
/// Exceptions: copying and the setters that take strings throw std::bad_alloc when there is no memory. A setter then
/// changes nothing; copy assignment may have copied some of the options. Other functions do not throw.
class COACCEL_DECL compile_options {
public:
    /// 1 GiB.
    static constexpr std::uint64_t default_cache_limit = std::uint64_t(1) << 30;

    // Not an aggregate: g++ 12 destroys temporaries of aggregate type twice inside a co_await expression.
    compile_options();
    explicit compile_options(std::string name); ///< Options for the kernel of this name.
    compile_options(const compile_options&);    ///< A copy.
    compile_options(compile_options&&) noexcept;
    compile_options& operator=(const compile_options&); ///< Becomes a copy.
    compile_options& operator=(compile_options&&) noexcept;
    ~compile_options();

    /// The kernel: the name of an extern "C" function, or a C++ expression such as "ns::scale<float>". Required.
    compile_options& name(std::string expression);
    const std::string& name() const noexcept { return name_; } ///< The kernel.

    /// Adds an NVRTC option, such as "--use_fast_math". The default language is C++17.
    compile_options& option(std::string text);
    const std::vector<std::string>& options() const noexcept { return options_; } ///< The NVRTC options.

    /// Adds an include folder. The folders of the CUDA toolkit and of CCCL are searched last, without being added.
    compile_options& include_folder(std::string path);
    const std::vector<std::string>& include_folders() const noexcept { return include_folders_; } ///< In search order.

    compile_options& add_header(std::string name, std::string text);         ///< Adds a header in memory.
    const std::vector<header>& headers() const noexcept { return headers_; } ///< The headers in memory.

    /// The architecture, such as 90 for sm_90; 0: that of the device.
    compile_options& architecture(int value);
    int architecture() const noexcept { return architecture_; } ///< 0: that of the device.

    compile_options& cache(disk_caching value);            ///< Whether the kernel is kept on disk.
    disk_caching cache() const noexcept { return cache_; } ///< Whether it is kept on disk.

    /// The folder for compiled kernels. Default: $COACCEL_CACHE_DIR, else coaccel/jit in $XDG_CACHE_HOME or in
    /// ~/.cache.
    compile_options& cache_folder(std::string path);
    const std::string& cache_folder() const noexcept { return cache_folder_; } ///< Empty: the default.

    /// The maximum size of the folder in bytes; the least recently used files are removed first.
    compile_options& cache_limit(std::uint64_t bytes);
    std::uint64_t cache_limit() const noexcept { return cache_limit_; } ///< In bytes.

    /// A function, or a lambda without captures, that replaces the kernel on the host backend. It takes the launch
    /// shape, then the parameters of the kernel, and does the work of the whole grid in one call.
    template <class Function>
    compile_options& host(Function f)
    {
        return host_as(make_host_function(+f));
    }
    const host_function& host() const noexcept { return host_; } ///< Empty: none.

private:
    compile_options& host_as(const host_function& f);

    std::string name_;
    std::vector<std::string> options_;
    std::vector<std::string> include_folders_;
    std::vector<header> headers_;
    std::string cache_folder_;
    std::uint64_t cache_limit_ = default_cache_limit;
    host_function host_;
    int architecture_ = 0;
    disk_caching cache_ = disk_caching::on;
};

} // namespace coaccel::jit

#endif
