// @ts-check
/** The live view of a run of one step: an anywidget (AFM) module. */
import { rendering, standing } from "./stand.js";
import { View } from "./view.js";

export default { initialize: standing(View), render: rendering(View) };
