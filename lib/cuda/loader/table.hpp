#ifndef COACCEL_CUDA_LOADER_TABLE_HPP
#define COACCEL_CUDA_LOADER_TABLE_HPP

#include "cuda/loader/dynamic_library.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

// The symbol for a function's name, after renaming by the vendor's headers.
#define COACCEL_CUDA_SYMBOL(function) COACCEL_CUDA_SYMBOL_TEXT(function)
#define COACCEL_CUDA_SYMBOL_TEXT(function) #function

namespace coaccel::cuda {

/// Finds the functions of a table. Errors: errc::library_too_old, with the name of the missing symbol.
using symbol_lookup = std::function<result<void*>(const char* symbol)>;

inline symbol_lookup symbols_of(const dynamic_library& library)
{
    return [library](const char* symbol) -> result<void*> {
        void* found = nullptr;
        if (const error_code ec = library.find(found, symbol))
            return ec;
        return found;
    };
}

template <class Function>
error_code fill(Function*& function, const symbol_lookup& find, const char* symbol)
{
    const auto found = find(symbol);
    if (!found)
        return found.error();
    function = reinterpret_cast<Function*>(found.value());
    return {};
}

/// "12.2" for 12020.
inline std::string version_text(int version)
{
    return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

/// "12.2.1" for 120201.
inline std::string three_part_version_text(int version)
{
    return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
           std::to_string(version % 100);
}

inline error_code too_old(const std::string& path, const std::string& version, const std::string& needed)
{
    return make_error_with_message(errc::library_too_old,
                                   path + ": version " + version + ", " + needed + " or later is needed");
}

/// Opens the library, checks its version and fills the table: `fill` is an overload for each kind of table.
template <class Table>
result<std::unique_ptr<Table>> open_table(const vendor_library_info& info)
{
    BOOST_OUTCOME_TRY(auto library, dynamic_library::open(info));
    auto table = std::make_unique<Table>();
    table->path = library.path();
    if (const error_code ec = fill(*table, symbols_of(library)))
        return ec;
    return table;
}

/// For vendor_library_info::load.
template <class Table>
result<const function_table*> as_functions(const result<const Table*>& loaded)
{
    if (!loaded)
        return loaded.error();
    return loaded.value();
}

/// A table for the whole process: created on first use and never destroyed. After a failure the next call tries again.
template <class Table>
class loaded_table {
public:
    /// `make` returns result<std::unique_ptr<Table>>. Thread safety: any thread.
    template <class Make>
    result<const Table*> get(Make make)
    {
        if (const Table* ready = peek())
            return ready;
        const std::scoped_lock lock(mutex_);
        if (const Table* ready = peek())
            return ready;
        BOOST_OUTCOME_TRY(auto made, make());
        const Table* ready = made.release();
        table_.store(ready, std::memory_order_release);
        return ready;
    }

    /// Null until the table is created.
    const Table* peek() const noexcept { return table_.load(std::memory_order_acquire); }

private:
    std::atomic<const Table*> table_{nullptr};
    std::mutex mutex_;
};

} // namespace coaccel::cuda

#endif
