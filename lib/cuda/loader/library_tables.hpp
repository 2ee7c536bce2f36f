#ifndef COACCEL_CUDA_LOADER_LIBRARY_TABLES_HPP
#define COACCEL_CUDA_LOADER_LIBRARY_TABLES_HPP

#include "cuda/loader/vendor_library.hpp"

#include <map>

namespace coaccel::cuda {

/// The vendor libraries of a backend: those of this machine, except for the tables that tests have given.
class library_tables {
public:
    library_tables() = default;

    template <class... Tables>
    explicit library_tables(const Tables*... tables)
    {
        (give(tables), ...);
    }

    template <class Table>
    void give(const Table* table)
    {
        given_[Table::library] = table;
    }

    /// Opens the library if it is not open yet, which may take long.
    template <class Table>
    result<const Table*> get() const
    {
        if (const auto found = given_.find(Table::library); found != given_.end())
            return static_cast<const Table*>(found->second);
        return Table::load();
    }

private:
    std::map<vendor_library, const function_table*> given_;
};

} // namespace coaccel::cuda

#endif
