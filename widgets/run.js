// @ts-check
/** The live view of a run of one step: an anywidget (AFM) module. */
import { View, rendering } from "./view.js";

export default { render: rendering(View) };
