/*
 * The headers of the kernels, byte for byte, in the order in which kernels.h includes them. Their
 * own #include lines are left out by the preprocessor of a device.
 */
#include "node/backends/kernels_text.h"

#include <stdint.h>

#include "core/embed.h"

#define ROOM "node/backends/kernels/"

SHERD__EMBED(sherd__text_dialect, "core/kernel.h");
SHERD__EMBED(sherd__text_funcs, "matrix/funcs_kernels.h");
SHERD__EMBED(sherd__text_job, ROOM "job.h");
SHERD__EMBED(sherd__text_maps, ROOM "maps.h");
SHERD__EMBED(sherd__text_layers, ROOM "layers.h");
SHERD__EMBED(sherd__text_f64, ROOM "product_f64.h");
SHERD__EMBED(sherd__text_residues, ROOM "product_residues.h");
SHERD__EMBED(sherd__text_bytes, ROOM "product_bytes.h");
SHERD__EMBED(sherd__text_tile, ROOM "tile.h");

const char *const sherd__kernel_names[SHERD__KERNELS] = {
    [SHERD__KERNEL_MAP] = "sherd__kernel_map",
    [SHERD__KERNEL_LAYER] = "sherd__kernel_layer",
    [SHERD__KERNEL_PEAK] = "sherd__kernel_peak",
    [SHERD__KERNEL_COLUMNS] = "sherd__kernel_columns",
    [SHERD__KERNEL_F64] = "sherd__kernel_product_f64",
    [SHERD__KERNEL_RESIDUES] = "sherd__kernel_product_residues",
    [SHERD__KERNEL_BYTES] = "sherd__kernel_product_bytes",
    [SHERD__KERNEL_CONVERT] = "sherd__kernel_convert",
    [SHERD__KERNEL_STORE] = "sherd__kernel_store",
    [SHERD__KERNEL_CENTRE] = "sherd__kernel_centre",
    [SHERD__KERNEL_REDUCE] = "sherd__kernel_reduce",
};

static const struct {
    const char *text, *end;
} parts[] = {
    { sherd__text_dialect, sherd__text_dialect_end },
    { sherd__text_funcs, sherd__text_funcs_end },
    { sherd__text_job, sherd__text_job_end },
    { sherd__text_maps, sherd__text_maps_end },
    { sherd__text_layers, sherd__text_layers_end },
    { sherd__text_f64, sherd__text_f64_end },
    { sherd__text_tile, sherd__text_tile_end },
    { sherd__text_residues, sherd__text_residues_end },
    { sherd__text_tile, sherd__text_tile_end },
    { sherd__text_bytes, sherd__text_bytes_end },
    { sherd__text_tile, sherd__text_tile_end },
};
_Static_assert(sizeof parts / sizeof *parts == SHERD__KERNELS_PARTS, "all parts are counted");

sherd__kernels_part sherd__kernels_part_at(size_t i)
{
    uintptr_t from = (uintptr_t)parts[i].text, to = (uintptr_t)parts[i].end;
    return (sherd__kernels_part){ parts[i].text, (size_t)(to - from) };
}
